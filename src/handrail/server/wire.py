"""The messages of the HTTP API. `routes` says which route takes and returns which."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from handrail.protocol.changes import ChangeRecord
from handrail.protocol.decisions import Decision, Facts, Mode
from handrail.protocol.events import AnyEvent
from handrail.protocol.permissions import AnswerKind, OpenedFolder, PermissionRequest, Question, StandingGrant
from handrail.protocol.receipt import ChainedRecord
from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import ToolDescription
from handrail.protocol.wire import Json, Time, Wire

Role = Literal["viewer", "operator", "admin"]
"""Each may do what the one before it may. A viewer reads, an operator works, an admin also removes and loosens."""
ROLES: tuple[Role, ...] = ("viewer", "operator", "admin")
TaskState = Literal["idle", "running", "waiting", "done", "failed", "cancelled", "limit", "interrupted", "unreadable"]
Text = Annotated[str, Meta(min_length=1, max_length=1_000_000)]
Name = Annotated[str, Meta(min_length=1, max_length=1_000)]


class ApiError(Wire, frozen=True, omit_defaults=False):
    """The body of every response with a status from 400."""

    code: str
    """A code of results, or UNAUTHORIZED, FORBIDDEN, TOO_LARGE, TOO_MANY, METHOD_NOT_ALLOWED, BUSY."""
    message: str
    details: Json = None
    ok: Literal[False] = False


class ApiCaller(Wire, frozen=True, omit_defaults=False):
    """Whose token it is."""

    name: str
    role: Role


class Login(Wire, frozen=True):
    token: Annotated[str, Meta(max_length=1_000)]


class ServerInfo(Wire, frozen=True, omit_defaults=False):
    """What a client needs to know first."""

    version: str
    caller: ApiCaller
    workspaces: tuple[str, ...]
    """The folders that new tasks may work in, the default first."""
    models: tuple[str, ...]
    """Models to choose from, the default first. Empty if none is set up."""
    modes: tuple[Mode, ...]
    """The modes that this caller may choose, the default first."""
    direct_calls: bool
    dialect: str | None = None


# Tasks


class Task(Wire, frozen=True, omit_defaults=False):
    """A session of a model, as lists show it."""

    id: str
    workspace: str
    title: str
    """The first prompt, shortened. Empty before it."""
    state: TaskState
    reason: str
    """Why it failed or stopped. Empty otherwise."""
    mode: Mode | None
    model: str | None
    created: Time | None
    updated: Time | None
    last_seq: int
    """The number of its last event."""
    waiting: int
    """Requests and questions that wait for a person."""
    files_changed: int
    here: bool
    """Whether this server works in it. Otherwise it is stored, or another process works in it."""


class TaskList(Wire, frozen=True, omit_defaults=False):
    tasks: tuple[Task, ...]
    """The last used one first."""
    total: int


class NewTask(Wire, frozen=True):
    prompt: Text | None = None
    """Absent: the task waits for its first prompt."""
    workspace: Name | None = None
    mode: Mode | None = None
    model: Name | None = None


class NewPrompt(Wire, frozen=True):
    text: Text


class Accepted(Wire, frozen=True, omit_defaults=False):
    """The work continues after the response, with events."""

    task: Task
    queued: bool = False
    """Whether a turn runs, so that the prompt reaches the model with its next results."""


class NewFork(Wire, frozen=True):
    before: Annotated[int, Meta(ge=1, le=1 << 53)] | None = None
    """Copies only what came before the prompt with this event number. Absent: everything."""


class NewMode(Wire, frozen=True):
    mode: Mode


class EventPage(Wire, frozen=True, omit_defaults=False):
    events: tuple[Any, ...]
    """Events of the protocol, in order. In a dialect, its own records."""
    next: int
    """`after` for the next page."""
    last_seq: int
    broken: tuple[int, ...] = ()
    """The numbers of events that cannot be read."""


Phase = Literal["model", "queue", "person", "policy", "sandbox", "tool"]


class TraceSpan(Wire, frozen=True, omit_defaults=False):
    """A part of the time of a turn."""

    phase: Phase
    name: str
    start_ms: float
    """Since the prompt."""
    duration_ms: float
    tool_call_id: str | None = None


class Trace(Wire, frozen=True, omit_defaults=False):
    """Where the time of a turn went."""

    turn: int
    """The event number of its prompt."""
    prompt: str
    duration_ms: float
    spans: tuple[TraceSpan, ...]


class Traces(Wire, frozen=True, omit_defaults=False):
    traces: tuple[Trace, ...]


# Approvals


class WaitingRequest(Wire, frozen=True, omit_defaults=False):
    request: PermissionRequest
    task: str
    workspace: str
    time: Time
    mode: Mode | None
    state: Literal["waiting", "ready"]
    """`ready`: it has its answer, and its call only waits to run."""


class WaitingQuestion(Wire, frozen=True, omit_defaults=False):
    question: Question
    task: str
    workspace: str
    time: Time


class GrantEntry(Wire, frozen=True, omit_defaults=False):
    """One of `grant` and `folder` is set."""

    id: str
    grant: StandingGrant | None
    folder: OpenedFolder | None
    workspace: str | None


class InboxList(Wire, frozen=True, omit_defaults=False):
    """What waits for people, in all tasks."""

    requests: tuple[WaitingRequest, ...]
    questions: tuple[WaitingQuestion, ...]
    grants: tuple[GrantEntry, ...]


class RequestDetail(Wire, frozen=True, omit_defaults=False):
    waiting: WaitingRequest
    outdated: tuple[str, ...]
    """Files that others changed since. If there are any, an approval is refused."""


class NewAnswer(Wire, frozen=True):
    """An answer to a request. An approval names the revision that the person saw."""

    kind: AnswerKind
    revision: int | None = None
    reason: Annotated[str, Meta(max_length=10_000)] | None = None
    grants: tuple[Name, ...] = ()


class NewReply(Wire, frozen=True):
    """Options, own words, or both. Neither dismisses the question."""

    chosen: tuple[str, ...] = ()
    text: Annotated[str, Meta(max_length=100_000)] | None = None


class NewCommand(Wire, frozen=True):
    command: Text | None = None
    """Absent: the same command again."""


class AnswerOutcome(Wire, frozen=True, omit_defaults=False):
    """The answer counts. If it was the last one of its batch, the calls run and the task continues."""

    task: str
    subject: str
    """The id of the request or question."""
    left: int
    """How many requests and questions of the task still wait."""


# Changes, processes


class ChangeList(Wire, frozen=True, omit_defaults=False):
    changes: tuple[ChangeRecord, ...]
    """The latest first."""


class ChangeDetail(Wire, frozen=True, omit_defaults=False):
    change: ChangeRecord
    diff: str


class NewUndo(Wire, frozen=True):
    resolve: Literal["later", "lines"] | None = None
    """With later changes of the same files: undo them too, or only lines that were not changed since."""
    preview: bool = False
    """Only tell what it would do."""


class UndoOutcome(Wire, frozen=True, omit_defaults=False):
    diff: str
    """What it changes, or would change."""
    result: ToolResult[Any] | None
    """None for a preview."""


class ProcessList(Wire, frozen=True, omit_defaults=False):
    processes: tuple[ProcessRecord, ...]


class ProcessOutput(Wire, frozen=True, omit_defaults=False):
    text: str
    next: int
    """`after` for what comes next."""
    running: bool


# Audit, policy, tools


class AuditPage(Wire, frozen=True, omit_defaults=False):
    records: tuple[ChainedRecord | None, ...]
    """The oldest first. Null: a record that was changed."""


class AuditCheck(Wire, frozen=True, omit_defaults=False):
    intact: bool
    records: int
    head: str
    problems: tuple[str, ...]
    unread: tuple[str, ...]


class PolicyQuestion(Wire, frozen=True):
    tool: Name = "exec"
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    command: str | None = None
    """Short for `exec` with this command."""
    mode: Mode | None = None
    workspace: Name | None = None


class PolicyAnswer(Wire, frozen=True, omit_defaults=False):
    decision: Decision
    facts: Facts
    mode: Mode
    text: tuple[str, ...]
    """The explanation for a person, line by line."""


class NewRule(Wire, frozen=True):
    """A rule to try, as a table of the settings."""

    rule: dict[str, Any]
    workspace: Name | None = None
    days: Annotated[int, Meta(ge=1, le=90)] = 7


class ChangedDecision(Wire, frozen=True, omit_defaults=False):
    task: str
    tool_call_id: str
    time: Time
    tool: str
    subject: str
    """The command or the path."""
    before: str
    after: str


class RuleEffect(Wire, frozen=True, omit_defaults=False):
    """What a rule would have changed."""

    toml: str
    """The rule for a settings file."""
    calls: int
    """The past calls that were decided again."""
    different: tuple[ChangedDecision, ...]


class ToolList(Wire, frozen=True, omit_defaults=False):
    tools: tuple[ToolDescription, ...]


class NewCall(Wire, frozen=True):
    name: Name
    args: dict[str, Any]
    workspace: Name | None = None
    task: Name | None = None
    """A task to call it in. Absent: a session of the server for this caller."""


class CallCheck(Wire, frozen=True, omit_defaults=False):
    """What a call would do: its problems, or the decision and what a person would be shown."""

    problems: tuple[Json, ...]
    """As INVALID_ARGUMENT lists them."""
    decision: Decision | None = None
    request: PermissionRequest | None = None
    """With the preview."""


class CallOutcome(Wire, frozen=True, omit_defaults=False):
    """A result. PERMISSION_REQUIRED: the call waits in the inbox."""

    task: str
    result: ToolResult[Any]


# Frames of /ws/{task}. A frame is one JSON object.


class EventFrame(Wire, frozen=True, tag_field="type", tag="event"):
    event: AnyEvent
    """In a dialect: its own record."""
    seq: int | None = None
    """In a dialect, with the last record of an event: its number, to resume after it."""


class OutputFrame(Wire, frozen=True, tag_field="type", tag="preview"):
    """Output of a preview that runs. The journal does not have this output."""

    tool_call_id: str
    output: str
    """Empty when the preview begins."""


class CaughtUpFrame(Wire, frozen=True, tag_field="type", tag="caught_up"):
    """All stored events were sent. What follows is live."""

    seq: int


class TaskFrame(Wire, frozen=True, tag_field="type", tag="task"):
    """The task changed its state."""

    task: Task


class DoneFrame(Wire, frozen=True, tag_field="type", tag="done"):
    """A frame of the client was obeyed."""

    id: str
    left: int = 0


class ErrorFrame(Wire, frozen=True, tag_field="type", tag="error"):
    """A frame of the client was refused."""

    code: str
    message: str
    id: str | None = None


ServerFrame = EventFrame | OutputFrame | CaughtUpFrame | TaskFrame | DoneFrame | ErrorFrame


class AnswerFrame(NewAnswer, frozen=True, kw_only=True, tag_field="type", tag="answer"):
    id: Name
    """Of this frame. The server repeats it."""
    request: Name


class ReplyFrame(NewReply, frozen=True, kw_only=True, tag_field="type", tag="reply"):
    id: Name
    question: Name


class PromptFrame(NewPrompt, frozen=True, kw_only=True, tag_field="type", tag="prompt"):
    id: Name


class CancelFrame(Wire, frozen=True, tag_field="type", tag="cancel"):
    id: Name


ClientFrame = AnswerFrame | ReplyFrame | PromptFrame | CancelFrame


class Closing:
    """Close codes of /ws/{task}."""

    UNAUTHORIZED = 4401
    FORBIDDEN = 4403
    NOT_FOUND = 4404
    SLOW = 4408
    """The client did not read for too long. It may resume after its last event."""
    TOO_MANY = 4429
    RESTARTING = 1012
