"""Fuzzy matching: `strategies.find_match` finds an old text that is not in the file as it is."""
