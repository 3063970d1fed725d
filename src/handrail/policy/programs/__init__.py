"""Tables of programs with the effects of their options."""
