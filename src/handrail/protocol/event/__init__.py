"""Every kind of event, one a file; the union below is the table of contents."""

from functools import cache

import msgspec

from handrail.protocol.event.change import Change
from handrail.protocol.event.display import Display
from handrail.protocol.event.end import End
from handrail.protocol.event.error import Error
from handrail.protocol.event.header import Channel, Event, PermissionEvent, ToolEvent
from handrail.protocol.event.mode import Mode
from handrail.protocol.event.network import Network
from handrail.protocol.event.notice import Notice
from handrail.protocol.event.process import Process
from handrail.protocol.event.reasoning import Reasoning
from handrail.protocol.event.text import Text
from handrail.protocol.event.tool_call_end import ToolCallEnd
from handrail.protocol.event.tool_call_error import ToolCallError
from handrail.protocol.event.tool_call_permission_denied import ToolCallPermissionDenied
from handrail.protocol.event.tool_call_permission_granted import ToolCallPermissionGranted
from handrail.protocol.event.tool_call_permission_required import ToolCallPermissionRequired
from handrail.protocol.event.tool_call_question_required import ToolCallQuestionRequired
from handrail.protocol.event.tool_call_running import ToolCallRunning
from handrail.protocol.event.tool_call_start import ToolCallStart
from handrail.protocol.event.tool_call_update import ToolCallUpdate
from handrail.protocol.event.usage import Usage
from handrail.protocol.event.user import User
from handrail.protocol.event.warning import Warning  # noqa: A004
from handrail.protocol.reading import json_decoder

AnyEvent = (
    User
    | Text
    | Reasoning
    | ToolCallStart
    | ToolCallRunning
    | ToolCallUpdate
    | ToolCallEnd
    | ToolCallError
    | ToolCallPermissionRequired
    | ToolCallPermissionGranted
    | ToolCallPermissionDenied
    | ToolCallQuestionRequired
    | Display
    | Warning
    | Usage
    | Process
    | Network
    | Change
    | Mode
    | Notice
    | End
    | Error
)
KINDS: tuple[type[Event], ...] = (
    User,
    Text,
    Reasoning,
    ToolCallStart,
    ToolCallRunning,
    ToolCallUpdate,
    ToolCallEnd,
    ToolCallError,
    ToolCallPermissionRequired,
    ToolCallPermissionGranted,
    ToolCallPermissionDenied,
    ToolCallQuestionRequired,
    Display,
    Warning,
    Usage,
    Process,
    Network,
    Change,
    Mode,
    Notice,
    End,
    Error,
)


def kind_of(event: type[Event] | Event) -> str:
    """The name the event goes by on the wire."""
    return str(event.__struct_config__.tag)


KIND_NAMES: dict[type[Event], str] = {kind: kind_of(kind) for kind in KINDS}


@cache
def _decoder() -> msgspec.json.Decoder[AnyEvent]:
    return json_decoder(AnyEvent)


def decode_event(data: bytes) -> AnyEvent:
    """Reads one event back, of any kind and any age."""
    return _decoder().decode(data)


__all__ = [
    "KINDS",
    "KIND_NAMES",
    "AnyEvent",
    "Change",
    "Channel",
    "Display",
    "End",
    "Error",
    "Event",
    "Mode",
    "Network",
    "Notice",
    "PermissionEvent",
    "Process",
    "Reasoning",
    "Text",
    "ToolCallEnd",
    "ToolCallError",
    "ToolCallPermissionDenied",
    "ToolCallPermissionGranted",
    "ToolCallPermissionRequired",
    "ToolCallQuestionRequired",
    "ToolCallRunning",
    "ToolCallStart",
    "ToolCallUpdate",
    "ToolEvent",
    "Usage",
    "User",
    "Warning",
    "decode_event",
    "kind_of",
]
