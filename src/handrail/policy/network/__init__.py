"""Hosts in commands, remotes or allowlists, found without looking anything up."""
