"""The one shape of a tool call."""

from datetime import datetime

from handrail.protocol.permission import Permission
from handrail.protocol.wire import Envelope, Json


class ToolCall(Envelope, frozen=True):
    """A request to run one tool. The runtime makes `tool_call_id`; a provider's own id is kept beside it."""

    tool_call_id: str
    name: str
    args: Json
    trace_id: str
    timestamp: datetime
    version: str | None = None
    provider_call_id: str | None = None
    message_id: str | None = None
    requested_permissions: tuple[Permission, ...] | None = None
    """May only narrow: a permission the tool needs and the list lacks is refused."""
