"""What every event carries."""

from typing import ClassVar, Literal

import msgspec

from handrail.protocol.permission import PermissionRequest
from handrail.protocol.wire import Time

Channel = Literal["response", "error", "end"]
_CAMEL = {
    "event_id": "eventId",
    "session_id": "sessionId",
    "message_id": "messageId",
    "tool_name": "toolName",
    "server_name": "serverName",
}


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", rename=_CAMEL):
    """Something that happened in a session, in the order of `seq`."""

    channel: ClassVar[Channel] = "response"

    event_id: str
    """The session and the number: unique, and the same whenever the event is read."""
    seq: int
    """1 for the first event of a session, then one more each; a reader goes on after the last it has."""
    session_id: str
    """The session, which is also the task and the conversation."""
    time: Time
    """When it was written down."""


class ToolEvent(Event, frozen=True, kw_only=True):
    """Something that happened to a call."""

    tool_call_id: str
    tool_call_name: str
    """What the call named."""
    tool_name: str | msgspec.UnsetType = msgspec.UNSET
    """Of another server's tool, what that server calls it; absent for all others."""
    server_name: str | msgspec.UnsetType = msgspec.UNSET
    """Which server that is."""

    @property
    def label(self) -> str:
        """The tool as people are shown it: `read`, `create_issue (github)`."""
        return f"{self.tool_name} ({self.server_name})" if self.server_name else self.tool_call_name


class PermissionEvent(ToolEvent, frozen=True, kw_only=True):
    """Something that happened to a question put to a person."""

    permission_request: PermissionRequest
