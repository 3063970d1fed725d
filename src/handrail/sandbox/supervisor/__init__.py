"""The supervisor of a command in tiers 1 and 0, a program for a bare interpreter."""
