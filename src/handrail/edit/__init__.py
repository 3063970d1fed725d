"""Text matching, diffs and patches. Pure: text in, text out."""
