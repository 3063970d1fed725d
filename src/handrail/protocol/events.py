"""Every event of a session. The union at the end is the table of contents."""

from functools import cache
from typing import Any, ClassVar, Literal, get_args

import msgspec

from handrail.protocol.calls import Confirm
from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Mode as ModeName
from handrail.protocol.permissions import Answer, Permission, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.text import to_one_line, truncate
from handrail.protocol.wire import Json, Time, get_json_decoder

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
    """The session and the number: unique and stable."""
    seq: int
    """1 for the first event of a session, then one more each."""
    session_id: str
    """The session, which is also the task and the conversation."""
    time: Time


class ToolEvent(Event, frozen=True, kw_only=True):
    """An event of a tool call."""

    tool_call_id: str
    tool_call_name: str
    """The name in the call."""
    tool_name: str | msgspec.UnsetType = msgspec.UNSET
    """The name on another server. Absent for our own tools."""
    server_name: str | msgspec.UnsetType = msgspec.UNSET
    """That server."""

    @property
    def label(self) -> str:
        """The tool for people: `read`, `create_issue (github)`."""
        return f"{self.tool_name} ({self.server_name})" if self.server_name else self.tool_call_name


class PermissionEvent(ToolEvent, frozen=True, kw_only=True):
    """An event of a permission request."""

    permission_request: PermissionRequest


class User(Event, frozen=True, kw_only=True, tag="user"):
    """A prompt or a queued message."""

    message_id: str
    text: str


class Text(Event, frozen=True, kw_only=True, tag="text"):
    """A piece of the model's answer, in order."""

    message_id: str
    """The assistant message that it is a piece of."""
    text: str


class Reasoning(Event, frozen=True, kw_only=True, tag="reasoning"):
    """A piece of the model's reasoning, if the provider shows it."""

    message_id: str
    """The assistant message that it belongs to."""
    text: str


class ToolCallStart(ToolEvent, frozen=True, kw_only=True, tag="tool_call.start"):
    """The call with all its arguments."""

    args: Json
    """As the caller gave them. Similar JSON replaces other values."""
    trace_id: str
    version: str | None = None
    """The requested version. Null: the current one."""
    provider_call_id: str | None = None
    message_id: str | None = None
    requested_permissions: tuple[Permission, ...] | None = None
    purpose: str | None = None
    """The model's reason for the call."""
    confirm: Confirm = False
    """Whether a person is asked even if policy allows the call, or only unless a grant covers it."""
    policy_ms: float | msgspec.UnsetType = msgspec.UNSET
    """The time that the policy took, with its facts. Absent for an allowed call without effects."""


class ToolCallRunning(ToolEvent, frozen=True, kw_only=True, tag="tool_call.running"):
    """Recorded before the first effect. If no end follows, the call was interrupted."""


class ToolCallUpdate(ToolEvent, frozen=True, kw_only=True, tag="tool_call.update"):
    """A new title, partial output or other live metadata."""

    title: str | None = None
    output: str | None = None
    """Output since the last update."""
    metadata: dict[str, Json] | None = None
    """Other data of the tool."""


class ToolCallEnd(ToolEvent, frozen=True, kw_only=True, tag="tool_call.end"):
    """The result. `ok` is true."""

    result: ToolResult[Any]


class ToolCallError(ToolEvent, frozen=True, kw_only=True, tag="tool_call.error"):
    """The result. `ok` is false and `error` says why."""

    result: ToolResult[Any]


class ToolCallPermissionRequired(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-required"):
    """Nothing of the batch runs until every request is answered."""


class ToolCallPermissionGranted(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-granted"):
    """The answer and the request that it approves."""

    answer: Answer


class ToolCallPermissionDenied(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-denied"):
    """The answer, with the reason for the model."""

    answer: Answer


class ToolCallQuestionRequired(ToolEvent, frozen=True, kw_only=True, tag="tool_call.question-required"):
    """The turn ends. The reply resumes it."""

    question: str
    options: tuple[str, ...] = ()
    multiple: bool = False
    custom: bool = False
    """The user may reply in their own words."""


Level = Literal["info", "success", "warning", "error", "progress"]


class Display(Event, frozen=True, kw_only=True, tag="display"):
    """Markdown for every live view."""

    content: str
    """Markdown, at most 10,000 characters."""
    level: Level = "info"
    title: str | None = None
    thought: str | None = None
    """Why it is shown."""
    evidence: tuple[str, ...] = ()
    """Its evidence: places, commands, links."""


class Warning(Event, frozen=True, kw_only=True, tag="warning"):  # noqa: A001  the wire calls it warning
    """A warning, and the rule or code that it comes from."""

    code: str
    """An error code or the id of a rule."""
    text: str
    tool_call_id: str | None = None


class Usage(Event, frozen=True, kw_only=True, tag="usage"):
    """Tokens of one request to a model."""

    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    """Input tokens from the provider's cache."""
    cost: float | None = None
    """In US dollars, if the price is known."""


class Process(Event, frozen=True, kw_only=True, tag="process"):
    """A process session was started, ended or removed. Each is recorded once."""

    process: str
    state: Literal["started", "ended", "removed"]
    command: str
    cwd: str | None = None
    """The folder that it was started in: relative in the workspace, absolute in an extra root."""
    pid: int | None = None
    exit_code: int | None = None
    """Null: it did not end by itself."""
    signal: str | None = None
    """The signal that ended it, as far as the exit code tells."""
    reason: str | None = None
    """Why handrail ended it: `stopped`, `idle`, `session`, `memory`, `processes`, `lost`. Null: it ended by itself."""
    ports: tuple[int, ...] = ()
    size: int | None = None
    """Bytes of its output."""


class Network(Event, frozen=True, kw_only=True, tag="network"):
    """A connection attempt, allowed or blocked."""

    host: str
    port: int
    allowed: bool
    reason: str
    """The rule that allowed or blocked it, in words."""
    tool_call_id: str | None = None
    process: str | None = None
    """The process session, if the command outlived its call."""


class ChangeEvent(ToolEvent, frozen=True, kw_only=True, tag="change"):
    """The change set of one call."""

    change: ChangeSet


class Mode(Event, frozen=True, kw_only=True, tag="mode"):
    """The mode from here on."""

    mode: ModeName


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """For example: a call was marked as interrupted after a crash."""

    text: str
    code: str | None = None


class End(Event, frozen=True, kw_only=True, tag="end"):
    """The end of a turn."""

    channel: ClassVar[Channel] = "end"

    reason: Literal["done", "cancelled", "limit", "parked", "question"]
    calls: int = 0
    files_changed: tuple[str, ...] = ()
    text: str = ""
    """The last text of the model."""


class Error(Event, frozen=True, kw_only=True, tag="error"):
    """A failure outside any call: the provider, the store, the loop."""

    channel: ClassVar[Channel] = "error"

    code: str
    """An error code."""
    message: str
    """What happened and what to do next: written for people."""
    retryable: bool = False
    """Whether the same prompt may succeed later."""


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
    | ChangeEvent
    | Mode
    | Notice
    | End
    | Error
)
KINDS: tuple[type[Event], ...] = get_args(AnyEvent)


def get_event_kind(event: type[Event] | Event) -> str:
    return str(event.__struct_config__.tag)


KIND_NAMES: dict[type[Event], str] = {kind: get_event_kind(kind) for kind in KINDS}


@cache
def _get_decoder() -> msgspec.json.Decoder[AnyEvent]:
    return get_json_decoder(AnyEvent)  # once: the hash of a large union is slow


def decode_event(data: bytes) -> AnyEvent:
    """Decode an event of any kind, recorded by any version."""
    return _get_decoder().decode(data)


class BrokenEvent(msgspec.Struct, frozen=True):
    """An event of a journal that cannot be read."""

    seq: int
    kind: str
    problem: str


_MAX_DISPLAY_CHARS = 200


def format_display(title: str | None, content: str) -> str:
    """What `display` shows, as one short line."""
    first = next((line.strip() for line in content.splitlines() if line.strip()), "")
    return truncate(to_one_line(f"{title}: {first}" if title else first), _MAX_DISPLAY_CHARS)
