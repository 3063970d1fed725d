"""Refusals that teach: the closest region, what differs in it, and what to do next."""
