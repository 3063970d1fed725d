"""All of the network that a command has: a proxy outside the sandbox, which reaches listed hosts and no others."""
