"""Where no layer can be had: what the workspace was before a command, kept so that it can be brought back."""
