"""Access to the files of the workspace."""
