"""The tools of a session in agent frameworks. Each framework has its module."""
