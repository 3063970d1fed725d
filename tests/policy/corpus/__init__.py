"""Corpora of commands: attacks whose effect is shown, and everyday reading that is to go unasked."""
