"""tool_call.update: a running call reports."""

from handrail.protocol.event.header import ToolEvent
from handrail.protocol.wire import Json


class ToolCallUpdate(ToolEvent, frozen=True, kw_only=True, tag="tool_call.update"):
    """A new title, partial output or other live metadata."""

    title: str | None = None
    """What it is doing now."""
    output: str | None = None
    """What it has printed since the last update."""
    metadata: dict[str, Json] | None = None
    """Whatever else the tool tells."""
