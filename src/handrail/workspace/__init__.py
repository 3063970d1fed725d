"""The only door to the workspace's disk."""
