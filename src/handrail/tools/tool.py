"""The contract of a tool."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from handrail.protocol.changes import ChangeSet, Preview
from handrail.protocol.decisions import Decision, Facts, ForeignFact, MemoryFact
from handrail.protocol.errors import ToolError
from handrail.protocol.events import Event
from handrail.protocol.permissions import AnswerKind, Question
from handrail.protocol.results import Attachment
from handrail.protocol.tool_spec import ToolSpec
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.changes.model import OverlayChanges
    from handrail.process.sessions.sessions import ProcessSession, ProcessSessions


CUSTOM_SECONDS = 600.0
"""How long a call of a custom tool takes at most, unless the tool names another time."""


class CallLimits(msgspec.Struct, frozen=True):
    """What a call may use."""

    characters: int = 30_000
    restricted: bool = False
    """The restricted profile: data must parse, commands have little time and space."""
    offloads: bool = True
    """Whether text that does not fit can be stored, since `read` is enabled to page it."""
    offline: bool = False
    """Whether the call has no network, whatever the settings allow."""
    bulk: bool = False
    """Whether the mode allows bulk changes without approval."""
    splits_streams: bool = False
    """Whether a command has two output streams instead of one in order."""


class ApprovalNeededError(Exception):
    """The result of a call needs approval. Nothing is committed; the changes are in the stored preview."""

    def __init__(self, decision: Decision, preview: Preview) -> None:
        super().__init__(decision.reason)
        self.decision = decision
        self.preview = preview


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool knows about its call. Its factory gets everything else."""

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
        """Raises CANCELLED if the call was cancelled. Call it between steps of long work."""
        if self.cancelled():
            raise ToolError("CANCELLED", "The call was cancelled.")


class SourceContext(Context, frozen=True, kw_only=True):
    """The context of a call of a tool source."""

    report_connection: Callable[[str, int, bool, str], None]
    """Logs a connection: host, port, whether it was allowed, and why not."""


class CommandContext(SourceContext, frozen=True, kw_only=True):
    """The context of exec, process and foreign tools: also the decision, the approval and how to judge changes."""

    facts: Facts
    answered: bool
    """Whether a person approved this call."""
    answer: AnswerKind | None
    preview_id: str | None
    """The stored preview that was approved."""
    earlier_changes: "tuple[OverlayChanges, ...]" = ()
    """What earlier calls of the batch would change, in their order. A preview runs on top of these changes."""
    judge: Callable[..., Decision]
    """Decides on changes that a command made in its overlay. Takes the text of each new `.git/config`."""
    needs_undo: Callable[[], Decision | None]
    """Decides on a command whose changes undo does not cover. None if it is allowed."""
    exclusive: Callable[[], AbstractContextManager[object]]
    """Locks the files of the workspace against other sessions. CONFLICT if that takes long."""


class CommandUse(msgspec.Struct, frozen=True):
    """A command that a call would run."""

    text: str
    cwd: str
    background: bool = False
    yields: bool = False
    """Whether it continues in the background if it outlasts the call."""


class ProcessUse(msgspec.Struct, frozen=True):
    """The action of a call on a process session."""

    action: str
    spelled: str = ""
    """The id or the start of it. Empty for all process sessions."""


class Touches(msgspec.Struct, frozen=True):
    """What a call declares before it runs, for facts, policy and locks."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    modes: frozenset[str] = frozenset()
    """Those of `writes` that it makes executable, or no longer executable."""
    locate_error: Callable[[ToolError, str], ToolError] | None = None
    """Adds to an error of a path where the call names the path."""
    command: CommandUse | None = None
    """The command. The paths are those that the command names."""
    build_command: Callable[[Workspace], CommandUse] | None = None
    """Builds the command from files of the workspace, instead of `command`."""
    process: ProcessUse | None = None
    memory: MemoryFact | None = None
    foreign: ForeignFact | None = None


class OffloadedText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is too large for the result, to be stored for `read`. The result already has its reference."""

    text: str | None = None
    file: str | None = None
    """A spill file with the output. It is moved away."""
    tail: bytes = b""
    """Bytes after those of the file."""
    characters: int | None = None


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool returns. The runtime makes the result from it."""

    summary: str
    content: str
    data: Any
    whole: str | None = None
    """The whole text, if `content` is a part of it. It is stored for `read`."""
    kept: OffloadedText | None = None
    raw: bytes | None = None
    """The printed bytes, if the text differs from them. They are stored for people."""
    failure: ToolError | None = None
    """The error of a call that failed and has data all the same."""
    title: str | None = None
    truncated: bool = False
    meta: dict[str, Any] = {}
    files_changed: tuple[str, ...] = ()
    commands_run: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    warnings: tuple[str, ...] = ()
    changes: ChangeSet | None = None
    events: tuple[tuple[type[Event], dict[str, Any]], ...] = ()
    """Events of built-in tools, written together with the result."""


class ReadMarks(Protocol):
    """Marks of the files that the session has read or written."""

    def get_mark(self, path: str) -> bytes | None: ...

    def set_mark(self, path: str, mark: bytes) -> None: ...


class Background(Protocol):
    """The background processes of a session, and the events about them."""

    @property
    def sessions(self) -> "ProcessSessions": ...

    @property
    def folder(self) -> str: ...

    @property
    def idle_seconds(self) -> float: ...

    def make_room(self) -> None: ...

    @property
    def awaited(self) -> dict[str, str]: ...

    def announce_start(self, process: "ProcessSession") -> None: ...

    def announce_end(self, process: "ProcessSession") -> None: ...

    def forget(self, process: "ProcessSession") -> None: ...


class Outputs(Protocol):
    """Stored outputs, by the id of their call."""

    def open(self, call_id: str) -> int:
        """A descriptor of the text. NOT_FOUND if the session has none."""
        ...


class Tool(msgspec.Struct, frozen=True):
    """One tool, ready to be called."""

    spec: ToolSpec
    run: Callable[[Any, Any], Output]
    touches: Callable[[Any], Touches] = lambda _: Touches()
    preview: Callable[[Any, Any], Preview] | None = None
    asks: Callable[[str, Any], Question] | None = None
    """Builds the question of a call to the person. The call does not run; the reply becomes its result."""
    context: type[Context] = Context
    """The type that `run` and `preview` get. CommandContext is for handrail's own tools."""
    timeout: float = CUSTOM_SECONDS
    """Seconds after which a call of a custom tool ends, even if its code still runs."""
