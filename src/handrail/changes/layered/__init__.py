"""What a command changed in its overlay: found, judged by the caller, stored until it is approved, and committed."""
