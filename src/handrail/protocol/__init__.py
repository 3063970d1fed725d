"""The wire contract of the runtime: data only."""
