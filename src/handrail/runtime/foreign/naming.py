"""What the tools of other servers are called here: `mcp__<server>__<tool>`, never the name of another tool.

Providers take letters, digits, _ and - only, and at most 64 of them. What fits is called so, and can be taken apart
again: the server ends at the first `__`, because one that has `__` in it, or ends in _, does not fit. All else is
cleaned, cut and given a digest of both whole names at its end. A name that looks as if it had a digest gets one too,
so that no tool can take the name that another one is given.
"""

import hashlib
import re

from handrail.policy.config import MCP_PREFIX

_MAX_NAME_CHARS = 64
_DIGITS = 10
_MAX_SERVER_CHARS = 20
"""Characters of a server's name that are kept where the whole does not fit."""
_FITS = re.compile(r"[A-Za-z0-9_-]+")
_LOOKS_DIGESTED = re.compile(rf".*_[0-9a-f]{{{_DIGITS}}}")
_UNFIT = re.compile(r"[^A-Za-z0-9-]+")


def build_tool_name(server: str, tool: str) -> str:
    """The name of a server's tool."""
    plain = f"{MCP_PREFIX}{server}__{tool}"
    return plain if len(plain) <= _MAX_NAME_CHARS and _can_be_told_apart(server, tool) else _digested(server, tool)


def split_tool_name(name: str) -> tuple[str, str] | None:
    """The server and its tool, of a name that was not cleaned; None for any other."""
    server, between, tool = name.removeprefix(MCP_PREFIX).partition("__")
    return (server, tool) if between and name.startswith(MCP_PREFIX) and build_tool_name(server, tool) == name else None


def _can_be_told_apart(server: str, tool: str) -> bool:
    fits = _FITS.fullmatch(server) is not None and _FITS.fullmatch(tool) is not None
    return fits and "__" not in server and not server.endswith("_") and not _LOOKS_DIGESTED.fullmatch(tool)


def _digested(server: str, tool: str) -> str:
    whole = f"{len(server)} {server} {tool}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(whole).hexdigest()[:_DIGITS]
    head = f"{MCP_PREFIX}{_cleaned(server)[:_MAX_SERVER_CHARS].strip('_') or 'server'}__"
    return f"{head}{_cleaned(tool)[: _MAX_NAME_CHARS - len(head) - _DIGITS - 1]}_{digest}"


def _cleaned(name: str) -> str:
    return _UNFIT.sub("_", name)
