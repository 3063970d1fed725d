"""A session: everything the steps of the pipeline work with; furnishing.py builds it."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.changes.recorder import Recorder
from handrail.policy.config import PolicyConfig
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Decision, Facts
from handrail.protocol.errors import CODES, RETRYABLE, ErrorInfo, ToolError
from handrail.protocol.permissions import Answer, FileBinding, PermissionRequest, Scope
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import escape_surrogates, sanitize_json
from handrail.runtime.background import BackgroundWork
from handrail.runtime.cancelling import CancelTokens
from handrail.runtime.locks import Locks, Release, SessionQueue
from handrail.runtime.outputs import StoredOutputs
from handrail.runtime.outside import OpenedRoots
from handrail.runtime.registry import ToolSet
from handrail.runtime.skills import SessionSkills
from handrail.store.audit import AuditChain, AuditRecord
from handrail.store.journal import CallContext, PendingEvent, SessionJournal
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import Context, Output, Tool
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.foreign.servers import ForeignCatalog
    from handrail.runtime.grants import Grants
    from handrail.store.memories import Memories

_MAX_MESSAGE_CHARS = 10_000


class Session(msgspec.Struct, kw_only=True):
    """One conversation with one workspace."""

    id: str
    folder: str
    workspace: Workspace
    skills: SessionSkills
    rules: PolicyConfig
    journal: SessionJournal
    chain: AuditChain
    locks: Locks
    outputs: StoredOutputs
    recorder: Recorder
    commands: CommandEnvironment
    background: BackgroundWork
    opened_roots: OpenedRoots
    notes: str
    """Where the notes about the workspace are."""
    granted: dict[Scope, str]
    """Where it is noted what people granted."""
    crashes: Callable[[], str]
    characters: int = 30_000
    batch_characters: int = 100_000
    repair: str | None = None
    preview_enabled: bool = True
    """Whether commands that ask are tried first."""
    lock_seconds: float = 5.0
    """How long a call waits for a file that another session holds."""
    queue_seconds: float = 660.0
    """How long it waits for a call of its own session in another process."""
    since_checkpoint: int = 0
    """Calls finished since the journal last noted how far the audit is."""
    pending_audit: list[AuditRecord] = []
    """Audit lines that could not be written: they come first the next time."""
    queue: SessionQueue = msgspec.field(default_factory=SessionQueue)
    closing: Any = msgspec.field(default_factory=threading.Lock)
    cancelled: Any = msgspec.field(default_factory=threading.Event)
    """Set while everything is to end."""
    cancel_tokens: CancelTokens = msgspec.field(default_factory=CancelTokens)
    """Single calls that are to end."""
    known_grants: Any = None
    foreign: "ForeignCatalog | None" = None
    """Other servers, where there are any."""
    turn: str = ""
    """What changes belong to, so that a whole turn can be undone; empty: each batch is a turn of its own."""

    @property
    def offer(self) -> ToolSet:
        """The tools that are offered now: fewer, where active skills say so."""
        return self.skills.offer

    def look_at_servers(self) -> None:
        """Makes what is offered of other servers what they list now. Costs a number each where that is as it was."""
        if (others := self.foreign) is not None:
            others.refresh(lambda: self.skills.renew(lambda offer: offer.with_foreign(others.extend_registry)))

    def is_cancelled(self, call_id: str) -> bool:
        """Whether a call is to end: alone, or with all the others."""
        return self.cancelled.is_set() or self.cancel_tokens.is_requested(call_id)

    @property
    def memories(self) -> "Memories":
        """The notes about the workspace. Few ask for them."""
        from handrail.store.memories import Memories  # noqa: PLC0415  as said

        return Memories(self.notes)

    @property
    def grants(self) -> "Grants":
        """What people granted, for commands. Few calls need it, so it is loaded when the first does."""
        if self.known_grants is None:
            from handrail.runtime.grants import Grants  # noqa: PLC0415  as said
            from handrail.store.grants import GrantFiles  # noqa: PLC0415

            self.known_grants = Grants({scope: GrantFiles(folder) for scope, folder in self.granted.items()})
        return self.known_grants


class PendingCall:
    """One call on its way; each step fills in its part."""

    __slots__ = (
        "answer",
        "args",
        "args_are_json",
        "arguments",
        "batch_id",
        "bound_files",
        "budget",
        "call",
        "change_set",
        "clock",
        "decision",
        "error",
        "facts",
        "id_is_ours",
        "journal_state",
        "outcome_decision",
        "output",
        "parallel_stop",
        "pending_events",
        "preview_id",
        "releases",
        "request",
        "result",
        "roots",
        "rules",
        "simulated",
        "tool",
        "unmet_previews",
        "warnings",
    )  # fmt: skip

    def __init__(self, call: ToolCall, clock: float, budget: int) -> None:
        self.call = call
        self.args, self.args_are_json = sanitize_json(call.args)
        """The arguments as the journal and the audit can hold them."""
        self.id_is_ours = False
        """The id was made for this call: whatever the journal has under it is this call's."""
        self.batch_id = call.tool_call_id
        """The id of the first call of the batch."""
        self.clock = clock
        self.budget = budget
        self.tool = NO_TOOL
        self.arguments: msgspec.Struct | None = None
        self.facts = _NO_FACTS
        self.decision = _UNDECIDED
        self.outcome_decision: Decision | None = None
        """What policy said of what the call came to, where that was no plain yes."""
        self.rules: PolicyConfig | None = None
        """What the decision was made by."""
        self.answer: Answer | None = None
        self.request: PermissionRequest | None = None
        """The question that the answer is to."""
        self.preview_id: str | None = None
        """Its stored preview: nobody needs it once the call has its result."""
        self.bound_files: tuple[FileBinding, ...] = ()
        """The files that the answer was given for."""
        self.simulated: Any = None
        """What it would leave for a command after it in its batch, once somebody found that out."""
        self.unmet_previews: set[str] = set()
        """Previews of earlier calls of the batch that it was tried on, and that were not committed yet."""
        self.output: Output | None = None
        self.change_set: ChangeSet | None = None
        """What a call had changed that was cut off, or that another process ran."""
        self.error: ErrorInfo | None = None
        self.warnings: tuple[str, ...] = ()
        """What there is to say beside the error."""
        self.result: ToolResult[Any] | None = None
        self.journal_state: str | None = None
        """The state in which the journal knows the call."""
        self.releases: list[Release] = []
        self.roots: tuple[Root, ...] = ()
        """Folders that a person opened for this call only."""
        self.parallel_stop: threading.Event | None = None
        """Set where it runs, or has run, beside others of its batch: whether they are to stop."""
        self.pending_events: list[PendingEvent] = []
        """Events that go with the call's next record."""

    def replace_call(self, call: ToolCall) -> None:
        """Puts the call in the place of the one that there is: a person changed its arguments."""
        self.call = call
        self.args, self.args_are_json = sanitize_json(call.args)

    def fail(self, error: ToolError) -> None:
        """Ends the flight with an error; the first one counts. A custom tool may have put anything in it."""
        if self.error is None:
            code = error.code if error.code in CODES else "INTERNAL"
            message, details = (
                escape_surrogates(str(error.message)[:_MAX_MESSAGE_CHARS]),
                sanitize_json(error.details)[0],
            )
            self.error = ErrorInfo(code=code, message=message, details=details, retryable=code in RETRYABLE)
            self.warnings = tuple(escape_surrogates(str(one)[:_MAX_MESSAGE_CHARS]) for one in error.warnings)

    @property
    def call_context(self) -> CallContext:
        """What the journal keeps of how the call was judged."""
        rules = self.rules
        if rules is None:
            return CallContext(self.batch_id, self.facts, self.decision, judged=self.outcome_decision)
        return CallContext(
            self.batch_id, self.facts, self.decision, rules.mode, rules.unattended, self.outcome_decision
        )

    @property
    def final_decision(self) -> Decision:
        """What it was decided on in the end: what it was to do, or what it did."""
        return self.outcome_decision or self.decision

    @property
    def name(self) -> str:
        """The tool's own name where it is known, else what was asked for, made short."""
        return self.tool.spec.name or self.call.name[:80]

    @property
    def version(self) -> str:
        """The version that runs."""
        return self.tool.spec.version or self.call.version or "0"


def _no_run(_context: Context, _arguments: Any) -> Output:
    raise ToolError("UNKNOWN_TOOL", "The call has no tool.")


NO_TOOL = Tool(ToolSpec(name="", title="", description="", version="", arguments=Arguments, data=Arguments), _no_run)
"""What a flight has while, or because, no tool was found for it."""
_NO_FACTS = Facts()
_UNDECIDED = Decision(decision="deny", rule="call.refused", reason="the call was refused before policy looked at it")
