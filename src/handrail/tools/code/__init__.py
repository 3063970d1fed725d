"""Tools for files of code."""
