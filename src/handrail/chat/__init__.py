"""The interactive session of `handrail chat`."""
