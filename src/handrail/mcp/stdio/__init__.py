"""The server over standard input and output: a thin layer of our own, since start-up counts."""
