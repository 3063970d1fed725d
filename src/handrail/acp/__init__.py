"""An agent for editors, by the Agent Client Protocol."""
