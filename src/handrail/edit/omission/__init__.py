"""Placeholders for lines that were left out."""
