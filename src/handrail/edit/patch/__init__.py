"""Patches: what a text with several changes of several files says, and where in a file its hunks belong."""
