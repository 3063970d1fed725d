"""Tier 2: bubblewrap puts a command in namespaces of its own."""
