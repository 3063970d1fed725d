"""Process sessions: background commands, each with a keeper of its own."""
