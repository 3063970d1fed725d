"""Runs commands: starts them, takes in what they print, ends them with everything they started."""
