"""The contract of a tool."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from handrail.protocol.changes import Change, ChangeSet
from handrail.protocol.decisions import Decision, Facts, ForeignFact
from handrail.protocol.errors import ToolError
from handrail.protocol.events import Event
from handrail.protocol.permissions import AnswerKind, Preview, Question
from handrail.protocol.results import Attachment
from handrail.protocol.tool_spec import ToolSpec
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.changes.model import OverlayChanges
    from handrail.process.sessions.sessions import ProcessSession, ProcessSessions


MAX_TEXT_BYTES = 32 * 1024 * 1024
"""Largest text and file that a tool edits: several copies of it are in memory."""


class CallLimits(msgspec.Struct, frozen=True):
    """What a call may use."""

    characters: int = 30_000
    """Of the result's content."""
    restricted: bool = False
    """The restricted profile: data that does not parse is refused, commands have little time and room."""
    offloads: bool = True
    """Whether what does not fit can be kept aside: `read` is there to fetch it."""
    offline: bool = False
    """Whether the network stays shut to the call, whatever the settings list."""
    bulk: bool = False
    """Whether the mode allows bulk changes unasked."""


class ApprovalNeededError(Exception):
    """What a call came to needs a person's yes: nothing of it is committed yet, and all of it waits in the preview."""

    def __init__(self, decision: Decision, preview: Preview) -> None:
        super().__init__(decision.reason)
        self.decision = decision
        self.preview = preview


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool knows about its call. Everything else a tool needs, its factory was given."""

    session_id: str
    message_id: str | None
    tool_call_id: str
    trace_id: str
    workspace: Workspace
    cancelled: Callable[[], bool]
    limits: CallLimits
    metadata: Callable[..., None]
    """`metadata(title=…, output=…)` updates live views."""

    def check_cancelled(self) -> None:
        """Raises when the call was cancelled: to be asked between steps of long work."""
        if self.cancelled():
            raise ToolError("CANCELLED", "The call was cancelled.")


class CommandContext(Context, frozen=True, kw_only=True):
    """The context of handrail's own tools for commands and of the tools of servers: also what was decided and approved,
    and how to judge the changes of a command."""

    facts: Facts
    """What the decision about the call was made from."""
    answered: bool
    """Whether a person said yes to this very call."""
    report_connection: Callable[[str, int, bool, str], None]
    """Logs an attempt to reach a host: which one and its port, whether it was let through, and why not."""
    answer: AnswerKind | None
    """What the person said, where somebody was asked."""
    preview_id: str | None
    """What the person approved: a stored preview."""
    earlier_changes: "tuple[OverlayChanges, ...]" = ()
    """What earlier calls of the batch would change, in their order: a command is tried as if that was committed."""
    judge: Callable[[tuple[Change, ...], Mapping[str, str]], Decision]
    """What policy says of changes that a command made in its overlay; with the text of each new `.git/config`."""
    needs_undo: Callable[[], Decision | None]
    """What policy says if undo does not cover what it changes; None where it is allowed all the same."""
    exclusive: Callable[[], AbstractContextManager[object]]
    """Keeps other sessions from changing files of the workspace meanwhile; ToolError CONFLICT where that takes long."""


class CommandUse(msgspec.Struct, frozen=True):
    """A command that a call would run."""

    text: str
    cwd: str
    background: bool = False
    yields: bool = False
    """Whether it goes on after its call where it takes longer than the call waits."""


class ProcessUse(msgspec.Struct, frozen=True):
    """What a call wants with a process session."""

    action: str
    spelled: str = ""
    """Its id, or the beginning of it; empty where the call is about all of them."""


class MemoryUse(msgspec.Struct, frozen=True):
    """What a call wants with the notes of the workspace."""

    action: str
    note: str = ""
    """Its id, or the title of a new one."""


class Touches(msgspec.Struct, frozen=True):
    """The paths a call declares, before it runs: facts, policy and locks go by them."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    locate_error: Callable[[ToolError, str], ToolError] | None = None
    """Where the call names a path, for a refusal that looking at it led to."""
    command: CommandUse | None = None
    """What it would run; the paths are then those that the command names."""
    process: ProcessUse | None = None
    """The process session that it is about."""
    memory: MemoryUse | None = None
    """The note that it is about."""
    foreign: ForeignFact | None = None
    """The tool of another server that it is about."""


class OffloadedText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is too large for the result, which names it already: to be kept for `read` to page."""

    text: str | None = None
    file: str | None = None
    """A file of ours that holds it as it was printed; it is moved away."""
    tail: bytes = b""
    """What comes after the file's own bytes."""
    characters: int | None = None


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool returns; only the runtime makes results."""

    summary: str
    content: str
    data: Any
    whole: str | None = None
    """The whole text, where `content` is only a part of it by design: kept for `read` to page."""
    kept: OffloadedText | None = None
    raw: bytes | None = None
    """What was printed, byte for byte, where the text is not the same: kept for people."""
    failure: ToolError | None = None
    """Why the call failed although it has data: the result carries both."""
    title: str | None = None
    truncated: bool = False
    meta: dict[str, Any] = {}
    files_changed: tuple[str, ...] = ()
    commands_run: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    warnings: tuple[str, ...] = ()
    changes: ChangeSet | None = None
    events: tuple[tuple[type[Event], dict[str, Any]], ...] = ()
    """What else there is to tell, of tools of our own only: it is written with the result, or not at all."""


class ReadMarks(Protocol):
    """What the session remembers of files it has read or written."""

    def get_mark(self, path: str) -> bytes | None:
        """The mark of a file."""
        ...

    def set_mark(self, path: str, mark: bytes) -> None:
        """Marks a file."""


class Background(Protocol):
    """The commands of a session that go on after their calls, and who tells of them."""

    @property
    def sessions(self) -> "ProcessSessions":
        """All that are known."""
        ...

    @property
    def folder(self) -> str:
        """Where they are, for the owner only."""
        ...

    @property
    def idle_seconds(self) -> float:
        """How long one goes on that prints nothing and that nobody asks about."""
        ...

    def make_room(self) -> None:
        """To be called before one is started; ToolError LIMIT_EXCEEDED where too many run."""

    @property
    def awaited(self) -> dict[str, str]:
        """Files for the folder of one whose call waits for it, by their names. If this process is killed meanwhile, it
        is to be ended: nobody knows its id."""
        ...

    def announce_start(self, process: "ProcessSession") -> None:
        """It goes on by itself from here: tells so, and when it has ended."""

    def announce_end(self, process: "ProcessSession") -> None:
        """It has ended: tells so, unless somebody did."""

    def forget(self, process: "ProcessSession") -> None:
        """Ends it where it runs, removes it, and tells both."""


class Outputs(Protocol):
    """Texts that were too large for a result, by the id of their call."""

    def open(self, call_id: str) -> int:
        """A descriptor of the whole text; ToolError NOT_FOUND when this session has none."""
        ...


def build_empty_touches(_: Any) -> Touches:
    """For tools that work on no path."""
    return Touches()


class Tool(msgspec.Struct, frozen=True):
    """One tool, ready to be called."""

    spec: ToolSpec
    run: Callable[[Any, Any], Output]
    """Gets its context and the arguments."""
    touches: Callable[[Any], Touches] = build_empty_touches
    preview: Callable[[Any, Any], Preview] | None = None
    asks: Callable[[str, Any], Question] | None = None
    """What a call of this id asks the person: it is not run, and the reply is its result."""
    context: type[Context] = Context
    """What `run` and `preview` get: a CommandContext is for handrail's own tools."""
