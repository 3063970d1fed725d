"""tool_call.error: a call failed or was refused."""

from typing import Any

from handrail.protocol.event.header import ToolEvent
from handrail.protocol.result import ToolResult


class ToolCallError(ToolEvent, frozen=True, kw_only=True, tag="tool_call.error"):
    """The result; `ok` is false and `error` says why."""

    result: ToolResult[Any]
