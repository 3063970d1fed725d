"""Confines commands: what they see, what they may do, how much they may use."""
