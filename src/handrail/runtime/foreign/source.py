"""Sources of foreign tools."""

import hashlib
import re
from typing import Any, Protocol

import msgspec

from handrail.policy.config import MCP_PREFIX
from handrail.protocol.permissions import Permission
from handrail.tools.tool import CommandContext, Output

# § [runtime.sources] Tools that come from elsewhere: what another server lists, and who calls it.


class ForeignTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it. The server may lie: none of this loosens anything by itself."""

    name: str
    """Its own name, untouched."""
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


class ToolSource(Protocol):
    """Another server. What it does wrong becomes a ToolError of the call, never more. Any thread may call it."""

    @property
    def server(self) -> str:
        """What the settings call it: letters, digits, _ and -."""
        ...

    @property
    def reach(self) -> tuple[Permission, ...]:
        """What the server can do: `[tools] deny` takes its tools away by that. Empty: it only computes."""
        ...

    @property
    def revision(self) -> int:
        """Another number whenever `listed` gives something else. Asked before every call, so it costs nothing."""
        ...

    def listed(self) -> tuple[ForeignTool, ...]:
        """What it offers; empty while it cannot be reached. It may wait for the server to start, within bounds."""
        ...

    def call(self, context: CommandContext, name: str, arguments: dict[str, Any]) -> Output:
        """Has the server do it; ToolError where that fails, is cancelled or takes too long."""
        ...

    def problems(self) -> tuple[str, ...]:
        """What is wrong with it now, in words for a person."""
        ...

    def close(self) -> None:
        """Ends it, and whatever it started."""


# § [runtime.foreign.naming] What the tools of other servers are called here: `mcp__<server>__<tool>`, never the
# § name of another tool. Providers take letters, digits, _ and - only, and at most 64 of them. What fits is called
# § so, and can be taken apart again: the server ends at the first `__`, because one that has `__` in it, or ends in
# § _, does not fit. All else is cleaned, cut and given a digest of both whole names at its end. A name that looks
# § as if it had a digest gets one too, so that no tool can take the name that another one is given.

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
