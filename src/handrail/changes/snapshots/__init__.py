"""Snapshots: the state of the workspace before a command that has no overlay, kept so that it can be brought back."""
