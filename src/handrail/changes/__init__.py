"""Change sets: what was done to files, written down before and after, carried out whole, and undone."""
