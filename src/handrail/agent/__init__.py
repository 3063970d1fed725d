"""The main loop: a model at work with the tools of a session."""
