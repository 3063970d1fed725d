"""System calls that Python does not have.

The keeper and the supervisor import these modules in a bare interpreter: standard library only, and cheap to load.
"""
