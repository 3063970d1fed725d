"""Judges the parts of a call: paths, simple commands, what the display parser saw."""
