"""What is known of the languages that files are written in."""
