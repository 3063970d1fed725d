"""Text matching and patches. Pure: text in, text out."""
