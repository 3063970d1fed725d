"""The programs that handrail can be the tools of, and how each is told."""
