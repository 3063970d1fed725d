"""Every event of a session."""

from functools import cache
from typing import Any, ClassVar, Literal, get_args

import msgspec

from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Mode as ModeName
from handrail.protocol.permissions import Answer, Permission, PermissionRequest
from handrail.protocol.results import ToolResult
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


class User(Event, frozen=True, kw_only=True, tag="user"):
    """A prompt or a queued message."""

    message_id: str
    text: str


class Text(Event, frozen=True, kw_only=True, tag="text"):
    """A piece of the model's answer, in order."""

    message_id: str
    """The assistant message it is a piece of."""
    text: str


class Reasoning(Event, frozen=True, kw_only=True, tag="reasoning"):
    """A piece of the model's reasoning, where the provider shows it."""

    message_id: str
    """The assistant message it belongs to."""
    text: str


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


class ToolCallRunning(ToolEvent, frozen=True, kw_only=True, tag="tool_call.running"):
    """Written before the first effect; without an end after it, the call was interrupted."""


class ToolCallUpdate(ToolEvent, frozen=True, kw_only=True, tag="tool_call.update"):
    """A new title, partial output or other live metadata."""

    title: str | None = None
    """What it is doing now."""
    output: str | None = None
    """What it has printed since the last update."""
    metadata: dict[str, Json] | None = None
    """Whatever else the tool tells."""


class ToolCallEnd(ToolEvent, frozen=True, kw_only=True, tag="tool_call.end"):
    """The result; `ok` is true."""

    result: ToolResult[Any]


class ToolCallError(ToolEvent, frozen=True, kw_only=True, tag="tool_call.error"):
    """The result; `ok` is false and `error` says why."""

    result: ToolResult[Any]


class ToolCallPermissionRequired(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-required"):
    """Nothing of the call's batch runs until every request of it is answered."""


class ToolCallPermissionGranted(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-granted"):
    """The answer and what it covers."""

    answer: Answer


class ToolCallPermissionDenied(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-denied"):
    """The answer with the reason the model will read."""

    answer: Answer


class ToolCallQuestionRequired(ToolEvent, frozen=True, kw_only=True, tag="tool_call.question-required"):
    """The turn ends; the answer resumes it."""

    question: str
    options: tuple[str, ...] = ()
    """Answers to choose from."""
    multiple: bool = False
    """Several may be chosen."""
    custom: bool = False
    """An answer in the person's own words is welcome."""


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
    """What it rests on: places, commands, links."""


class Warning(Event, frozen=True, kw_only=True, tag="warning"):  # noqa: A001  the wire calls it warning
    """What, and which rule or code it comes from."""

    code: str
    """An error code or the id of a rule."""
    text: str
    tool_call_id: str | None = None
    """The call it is about, if it is about one."""


class Usage(Event, frozen=True, kw_only=True, tag="usage"):
    """Tokens of one request to a model."""

    model: str
    """Provider and model."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    """Of the input, what the provider had in its cache."""
    cost: float | None = None
    """In US dollars, where the price is known."""


class Process(Event, frozen=True, kw_only=True, tag="process"):
    """Started, ended or removed; each is told once, whoever is there to tell it."""

    process: str
    """The id of the process session."""
    state: Literal["started", "ended", "removed"]
    command: str
    cwd: str | None = None
    """The folder that it was started in, as results name folders."""
    pid: int | None = None
    exit_code: int | None = None
    """Of a process that ended by itself."""
    signal: str | None = None
    """The signal that ended it, as far as the exit code tells."""
    reason: str | None = None
    """Why it ended, where it did not do so by itself: `stopped`, `idle`, `session`, `memory`, `processes`, `lost`."""
    ports: tuple[int, ...] = ()
    """TCP ports it listens on."""
    size: int | None = None
    """Bytes that it had printed."""


class Network(Event, frozen=True, kw_only=True, tag="network"):
    """One connection attempt, let through or not."""

    host: str
    port: int
    allowed: bool
    reason: str
    """The rule that let it through or stopped it, in words."""
    tool_call_id: str | None = None
    """The call whose command it was."""
    process: str | None = None
    """The process session that it was of, where the command went on after its call."""


class ChangeEvent(ToolEvent, frozen=True, kw_only=True, tag="change"):
    """The change set of one call."""

    change: ChangeSet


class Mode(Event, frozen=True, kw_only=True, tag="mode"):
    """The mode from here on."""

    mode: ModeName


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """For example: a call that a crash cut off was sealed as interrupted."""

    text: str
    code: str | None = None
    """The error code it has to do with, if any."""


class End(Event, frozen=True, kw_only=True, tag="end"):
    """Why it ended, and what it left."""

    channel: ClassVar[Channel] = "end"

    reason: Literal["done", "cancelled", "limit", "parked", "question"]
    calls: int = 0
    """How many calls the turn made."""
    files_changed: tuple[str, ...] = ()
    """The files that are different now."""
    text: str = ""
    """The model's last words."""


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
    """The name of the event on the wire."""
    return str(event.__struct_config__.tag)


KIND_NAMES: dict[type[Event], str] = {kind: get_event_kind(kind) for kind in KINDS}


@cache
def _get_decoder() -> msgspec.json.Decoder[AnyEvent]:
    return get_json_decoder(AnyEvent)  # once: the hash of a large union is slow


def decode_event(data: bytes) -> AnyEvent:
    """Decode an event of any kind, recorded by any version."""
    return _get_decoder().decode(data)
