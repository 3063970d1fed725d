"""How a person at a terminal is asked: a request as text, and an answer by one key."""
