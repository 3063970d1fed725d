"""Tiers 1 and 0, the program: it runs one command and ends with everything that the command started.

Only what a bare interpreter has is imported here.
"""
