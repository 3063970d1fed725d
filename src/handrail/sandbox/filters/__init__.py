"""The filters of system calls: data, and what puts them together."""
