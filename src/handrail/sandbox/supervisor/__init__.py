"""The supervisor of a command below tier 2, a program for a bare interpreter."""
