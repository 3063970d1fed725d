"""Patches: `envelope.parse_patch` parses them, `apply.apply_hunks` applies the hunks of a file."""
