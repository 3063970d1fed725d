"""Asks a person at a terminal."""
