"""The network of a command: a proxy outside the sandbox that reaches listed hosts only."""
