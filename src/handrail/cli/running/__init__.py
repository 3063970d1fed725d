"""What `run` is made of: what it is given, what it shows while a model works, whom it asks, and how it ends."""
