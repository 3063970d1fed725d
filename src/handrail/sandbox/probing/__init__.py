"""Finds out what this machine can do, and says what would help where it cannot."""
