"""Tools of other servers: their names, pins, schemas, calls."""
