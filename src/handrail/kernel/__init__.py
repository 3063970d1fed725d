"""System calls that Python does not have."""
