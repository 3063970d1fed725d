"""tool_call.start: a call was received."""

from handrail.protocol.event.header import ToolEvent
from handrail.protocol.permission import Permission
from handrail.protocol.wire import Json


class ToolCallStart(ToolEvent, frozen=True, kw_only=True, tag="tool_call.start"):
    """The call as it came in, with all its arguments."""

    args: Json
    """As they came in; what is not JSON is replaced by the nearest that is."""
    trace_id: str
    version: str | None = None
    """The version asked for; null: the current one."""
    provider_call_id: str | None = None
    message_id: str | None = None
    requested_permissions: tuple[Permission, ...] | None = None
