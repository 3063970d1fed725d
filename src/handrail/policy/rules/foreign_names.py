"""Names of other servers' tools, as people write them: one, some by a glob, or all of a server."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

FOREIGN = "mcp__"
"""How they begin, and nothing else does: no tool of ours, no class of commands."""


def names_foreign(written: str, tool: str) -> bool:
    """Whether a tool is meant: by `mcp__github__create_issue`, `mcp__github__get_*`, or `mcp__github` for all of it."""
    names = (written, f"{written.rstrip('_')}__*") if written.count("__") == 1 else (written,)
    return any(fnmatchcase(tool, name) for name in names)


def takes_away(written: Iterable[str], tool: str) -> bool:
    """Whether one of these takes a tool away, in whatever case it is spelled."""
    folded = tool.casefold()
    names = (one.casefold() for one in written)
    return any(names_foreign(name, folded) for name in names if name.startswith(FOREIGN))
