"""Tools that come from elsewhere: what another server lists, and who calls it."""

from typing import Any, Protocol

import msgspec

from handrail.protocol.permissions import Permission
from handrail.tools.contract import CommandContext, Output


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
