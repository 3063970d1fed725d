"""tool_call.update: a running call reports."""

from handrail.protocol.event.header import ToolEvent
from handrail.protocol.wire import Json


class ToolCallUpdate(ToolEvent, frozen=True, kw_only=True, tag="tool_call.update"):
    """A new title, partial output or other live metadata."""

    title: str | None = None
    output: str | None = None
    metadata: dict[str, Json] | None = None
