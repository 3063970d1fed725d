"""Language servers: their programs, their protocol, their answers about a workspace."""
