"""Speaks the languages of other systems."""
