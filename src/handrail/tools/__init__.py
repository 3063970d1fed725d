"""The tools, one a file."""
