"""Tier 3: what a command changes goes into an overlay over the workspace, which is committed or thrown away."""
