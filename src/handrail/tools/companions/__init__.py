"""Tools for the conversation with the person. Each is disabled by default."""
