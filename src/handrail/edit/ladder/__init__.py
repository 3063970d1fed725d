"""What an oldText means that is not in the file as it is, and what the edit changes there."""
