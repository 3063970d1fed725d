"""Names of other servers' tools, as people write them: one, some by a glob, or all of a server."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

MCP_PREFIX = "mcp__"
"""How they begin, and nothing else does: no tool of ours, no class of commands."""


def is_mcp_name_match(written: str, tool: str) -> bool:
    """Whether a tool is meant: by `mcp__github__create_issue`, `mcp__github__get_*`, or `mcp__github` for all of it."""
    names = (written, f"{written.rstrip('_')}__*") if written.count("__") == 1 else (written,)
    return any(fnmatchcase(tool, name) for name in names)


def is_mcp_tool_excluded(written: Iterable[str], tool: str) -> bool:
    """Whether one of these takes a tool away, in whatever case it is spelled."""
    folded = tool.casefold()
    names = (one.casefold() for one in written)
    return any(is_mcp_name_match(name, folded) for name in names if name.startswith(MCP_PREFIX))
