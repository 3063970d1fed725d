"""tool_call.start: a call was received."""

from handrail.protocol.event.header import ToolEvent
from handrail.protocol.permission import Permission
from handrail.protocol.wire import Json


class ToolCallStart(ToolEvent, frozen=True, kw_only=True, tag="tool_call.start"):
    """The call as it came in, with all its arguments."""

    args: Json
    trace_id: str
    version: str | None = None
    provider_call_id: str | None = None
    message_id: str | None = None
    requested_permissions: tuple[Permission, ...] | None = None
