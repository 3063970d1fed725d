"""Tier 3: what a command changes goes into a layer over the workspace, which is kept or thrown away."""
