"""A command's environment variables."""
