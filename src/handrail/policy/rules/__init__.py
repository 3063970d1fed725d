"""The rules that people write."""
