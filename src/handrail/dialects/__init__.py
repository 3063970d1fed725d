"""Dialects: what other systems speak, on the same engine."""
