"""Clients that do otherwise than the protocol has it, by the names that they give. docs/mcp.md says which versions were
tried. No right hangs on a name: a client that is here by mistake is told less well, and nothing else."""

SHOWS_STRUCTURE_ONLY = frozenset(
    {"claude-code", "codex-mcp-client", "Visual Studio Code", "Visual Studio Code - Insiders"}
)
"""They show their model `structuredContent` and leave the text out. The protocol wants both to say the same; ours is a
whole result for programs, with what a command printed in it twice, and Claude Code puts what is
that long away. (VS Code by its source; the others were tried.)"""

SENDS_NO_EMPTY_FIELD = frozenset({"codex-mcp-client"})
"""A form of theirs cannot be sent while a text field is empty, also one that may be."""
