"""Companions: tools that work on the conversation with the person, and on no file. Each is off until switched on."""
