"""Tools of a session for agent frameworks and SDKs: one module each."""
