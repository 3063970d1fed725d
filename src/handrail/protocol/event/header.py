"""What every event carries."""

from datetime import datetime
from typing import ClassVar, Literal

import msgspec

from handrail.protocol.permission import PermissionRequest

Channel = Literal["response", "error", "end"]
_CAMEL = {"event_id": "eventId", "session_id": "sessionId", "message_id": "messageId"}


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", rename=_CAMEL):
    """Something that happened in a session, in the order of `seq`."""

    channel: ClassVar[Channel] = "response"

    event_id: str
    seq: int
    session_id: str
    time: datetime


class ToolEvent(Event, frozen=True, kw_only=True):
    """Something that happened to a call."""

    tool_call_id: str
    tool_call_name: str


class PermissionEvent(ToolEvent, frozen=True, kw_only=True):
    """Something that happened to a question put to a person."""

    permission_request: PermissionRequest
