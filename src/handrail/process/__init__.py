"""Runs commands, and ends them with everything they started."""
