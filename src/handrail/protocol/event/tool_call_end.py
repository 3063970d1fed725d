"""tool_call.end: a call succeeded."""

from typing import Any

from handrail.protocol.event.header import ToolEvent
from handrail.protocol.result import ToolResult


class ToolCallEnd(ToolEvent, frozen=True, kw_only=True, tag="tool_call.end"):
    """The result; `ok` is true."""

    result: ToolResult[Any]
