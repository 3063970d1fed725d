"""A session: everything the steps of the pipeline work with; furnishing.py builds it."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.changes.recorder import Recorder
from handrail.policy.verdict import Rules
from handrail.protocol.call import ToolCall
from handrail.protocol.change import ChangeSet
from handrail.protocol.decision import Decision, Facts
from handrail.protocol.error import CODES, RETRYABLE, ErrorInfo, ToolError
from handrail.protocol.permission import Answer, Basis, PermissionRequest, Scope
from handrail.protocol.plain import plain, readable
from handrail.protocol.result import ToolResult
from handrail.protocol.tool import Arguments, ToolSpec
from handrail.runtime.background import BackgroundWork
from handrail.runtime.cancelling import Cancelling
from handrail.runtime.locks import Locks, Release, Turns
from handrail.runtime.outputs import KeptOutputs
from handrail.runtime.outside import OutsideFolders
from handrail.runtime.registry import Offer
from handrail.runtime.skills import Skills
from handrail.store.audit import Chain, Record
from handrail.store.journal import Decided, Draft, Journal
from handrail.tools.commands import Commands
from handrail.tools.contract import Context, Output, Tool
from handrail.workspace.root import Root
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.foreign.servers import OtherServers
    from handrail.runtime.grants import Grants
    from handrail.store.memories import Memories

_LONGEST_MESSAGE = 10_000


class Session(msgspec.Struct, kw_only=True):
    """One conversation with one workspace."""

    id: str
    folder: str
    workspace: Workspace
    skills: Skills
    rules: Rules
    journal: Journal
    chain: Chain
    locks: Locks
    outputs: KeptOutputs
    recorder: Recorder
    commands: Commands
    background: BackgroundWork
    outside: OutsideFolders
    notes: str
    """Where the notes about the workspace are."""
    granted: dict[Scope, str]
    """Where it is noted what people granted."""
    crashes: Callable[[], str]
    characters: int = 30_000
    batch_characters: int = 100_000
    repair: str | None = None
    tries: bool = True
    """Whether commands that ask are tried first."""
    lock_seconds: float = 5.0
    """How long a call waits for a file that another session holds."""
    queue_seconds: float = 660.0
    """How long it waits for a call of its own session in another process."""
    unnoted: int = 0
    """Calls finished since the journal last noted how far the audit is."""
    owed: list[Record] = []
    """Audit lines that could not be written: they come first the next time."""
    turns: Turns = msgspec.field(default_factory=Turns)
    closing: Any = msgspec.field(default_factory=threading.Lock)
    cancelled: Any = msgspec.field(default_factory=threading.Event)
    """Set while everything is to end."""
    cancelling: Cancelling = msgspec.field(default_factory=Cancelling)
    """Single calls that are to end."""
    known_grants: Any = None
    others: "OtherServers | None" = None
    """Other servers, where there are any."""
    turn: str = ""
    """What changes belong to, for who takes a whole turn back; empty: each batch is a turn of its own."""

    @property
    def offer(self) -> Offer:
        """The tools that are offered now: fewer, where active skills say so."""
        return self.skills.offer

    def look_at_servers(self) -> None:
        """Makes what is offered of other servers what they list now. Costs a number each where that is as it was."""
        if (others := self.others) is not None:
            others.look(lambda: self.skills.renew(lambda offer: offer.renewed(others.renewed)))

    def ends(self, call_id: str) -> bool:
        """Whether a call is to end: alone, or with all the others."""
        return self.cancelled.is_set() or self.cancelling.asked(call_id)

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


class Flight:
    """One call on its way; each step fills in its part."""

    __slots__ = (
        "answer",
        "args",
        "args_are_json",
        "arguments",
        "asked",
        "based_on",
        "batch_id",
        "budget",
        "call",
        "clock",
        "decision",
        "drafts",
        "error",
        "facts",
        "fresh",
        "held",
        "judged",
        "left",
        "made",
        "missing",
        "output",
        "recorded",
        "result",
        "roots",
        "rules",
        "stopped",
        "tool",
        "tried",
        "warnings",
    )  # fmt: skip

    def __init__(self, call: ToolCall, clock: float, budget: int) -> None:
        self.call = call
        self.args, self.args_are_json = plain(call.args)
        """The arguments as the journal and the audit can hold them."""
        self.fresh = False
        """The id was made for this call: whatever the journal has under it is this call's."""
        self.batch_id = call.tool_call_id
        """The id of the first call of the batch."""
        self.clock = clock
        self.budget = budget
        self.tool = NO_TOOL
        self.arguments: msgspec.Struct | None = None
        self.facts = _NO_FACTS
        self.decision = _UNDECIDED
        self.judged: Decision | None = None
        """What policy said of what the call came to, where that was no plain yes."""
        self.rules: Rules | None = None
        """What the decision was made by."""
        self.answer: Answer | None = None
        self.asked: PermissionRequest | None = None
        """The question that the answer is to."""
        self.tried: str | None = None
        """A trial of it that waits, sealed: nobody needs it once the call has its result."""
        self.based_on: tuple[Basis, ...] = ()
        """The files that the answer was given for."""
        self.left: Any = None
        """What it would leave for a command after it in its batch, once somebody found that out."""
        self.missing: set[str] = set()
        """Trials of earlier calls of the batch that it was tried on, and that were not kept yet."""
        self.output: Output | None = None
        self.made: ChangeSet | None = None
        """What a call had changed that was cut off, or that another process ran."""
        self.error: ErrorInfo | None = None
        self.warnings: tuple[str, ...] = ()
        """What there is to say beside the error."""
        self.result: ToolResult[Any] | None = None
        self.recorded: str | None = None
        """The state in which the journal knows the call."""
        self.held: list[Release] = []
        self.roots: tuple[Root, ...] = ()
        """Folders that a person opened for this call only."""
        self.stopped: threading.Event | None = None
        """Set where it runs, or has run, beside others of its batch: whether they are to stop."""
        self.drafts: list[Draft] = []
        """Events that go with the call's next record."""

    def give_args(self, call: ToolCall) -> None:
        """Puts the call in the place of the one that there is: a person changed its arguments."""
        self.call = call
        self.args, self.args_are_json = plain(call.args)

    def fail(self, error: ToolError) -> None:
        """Ends the flight with an error; the first one counts. A custom tool may have put anything in it."""
        if self.error is None:
            code = error.code if error.code in CODES else "INTERNAL"
            message, details = readable(str(error.message)[:_LONGEST_MESSAGE]), plain(error.details)[0]
            self.error = ErrorInfo(code=code, message=message, details=details, retryable=code in RETRYABLE)
            self.warnings = tuple(readable(str(one)[:_LONGEST_MESSAGE]) for one in error.warnings)

    @property
    def decided(self) -> Decided:
        """What the journal keeps of how the call was judged."""
        rules = self.rules
        if rules is None:
            return Decided(self.batch_id, self.facts, self.decision, judged=self.judged)
        return Decided(self.batch_id, self.facts, self.decision, rules.mode, rules.unattended, self.judged)

    @property
    def verdict(self) -> Decision:
        """What it was decided on in the end: what it was to do, or what it did."""
        return self.judged or self.decision

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
