"""Replay: the calls of a recorded session once more, on a copy of the workspace as it was before them."""
