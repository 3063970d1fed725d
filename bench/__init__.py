"""Benchmarks of the installed wheel, run by scripts/bench.

A benchmark is a module or package in this one with a function `rows() -> Iterator[Finding]` and its name in BENCHMARKS.
"""

BENCHMARKS = (
    "startup",
    "small_read",
    "dialects",
    "large_file",
    "edit",
    "search",
    "trees",
    "code",
    "policy",
    "exec",
    "first_command",
    "layers",
    "run",
    "chat",
    "loop",
    "mcp",
    "lsp",
    "fleet",
    "server",
    "web",
)
