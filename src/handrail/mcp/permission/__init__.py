"""How a person is asked through a client, or beside it."""
