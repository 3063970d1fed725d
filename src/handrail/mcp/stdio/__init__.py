"""The server over standard input and output: a small implementation of our own, since start-up counts."""
