"""Many workers over one PostgreSQL."""
