"""What a command sees of the disk."""
