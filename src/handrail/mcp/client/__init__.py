"""Other servers as sources of tools."""
