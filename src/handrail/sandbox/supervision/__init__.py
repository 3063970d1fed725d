"""Tiers 1 and 0, the runtime's side: what a supervisor is told and what it fences a command in with."""
