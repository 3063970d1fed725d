"""A session."""

import os
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from handrail.changes.history import History
from handrail.changes.recorder import Recorder
from handrail.policy.config import PolicyConfig
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Decision, Facts
from handrail.protocol.errors import CODES, RETRYABLE, ErrorInfo, ToolError, UsageError
from handrail.protocol.permissions import Answer, FileBinding, PermissionRequest, Scope
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import escape_surrogates, sanitize_json
from handrail.runtime.background import BackgroundWork
from handrail.runtime.grants import OpenedRoots, build_boundary
from handrail.runtime.locks import CancelTokens, Locks, Release, SessionQueue
from handrail.runtime.registry import ToolRegistry, ToolServices, ToolSet, list_builtin_tools
from handrail.runtime.skills import SessionSkills
from handrail.runtime.stored_output import StoredOutputs
from handrail.settings import Settings, resolve_user_file
from handrail.settings.paths import MANAGED_FILE
from handrail.settings.units import parse_size
from handrail.store.audit import AuditChain, AuditRecord
from handrail.store.blobs import Blobs
from handrail.store.database import Database
from handrail.store.grants import GrantedFolders
from handrail.store.journal import CallContext, PendingEvent, SessionJournal
from handrail.store.runner import Runner
from handrail.store.state_dir import GRANTED, OPENED, StateFolder, check_session_id, make_private, save_workspace_path
from handrail.store.transcript import ActiveSkills, fork_journal
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.tool import Context, Output, Tool
from handrail.workspace.roots import Boundary, Root
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.foreign.catalog import ForeignCatalog
    from handrail.runtime.foreign.source import ToolSource
    from handrail.runtime.grants import Grants
    from handrail.skills.skill import SkillFolder
    from handrail.store.memories import Memories


# § [runtime.session] A session: everything the steps of the pipeline work with; furnishing.py builds it.

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


# § [runtime.furnishing] Furnishes a session: from what was agreed on and opened for it, everything that the steps
# § and the tools work with.

Resolver = Literal["kernel", "walk"]
"""Who resolves paths: openat2 or our own walk. By default what this machine can do."""


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened on."""

    workspace: str
    session_id: str
    state: StateFolder
    settings: Settings
    rules: PolicyConfig
    custom: tuple[Tool, ...]
    repair: str | None
    resolver: Resolver | None
    variables: Mapping[str, str] | None
    sources: "tuple[ToolSource, ...]"


class SessionResources(msgspec.Struct, frozen=True, kw_only=True):
    """What was opened for it, and is closed with it."""

    root: str
    """The workspace's real path."""
    folder: str
    """The session's own."""
    workspace: Workspace
    database: Database
    runner: Runner
    chain: AuditChain


def build_session(terms: SessionOptions, ground: SessionResources, custom: tuple[Tool, ...]) -> Session:
    """The session, with its tools."""
    session, tools = _session(terms, ground), terms.settings.tools
    registry = ToolRegistry(list_builtin_tools(_parts(session, terms.settings)), custom)
    session.skills.attach(ToolSet(registry, enable=tools.enable, disable=tools.disable, deny=terms.rules.denied))
    return session


def build_opened_roots(
    house: Workspace, stores: "dict[Scope, GrantedFolders]", session_id: str, state: StateFolder, rules: PolicyConfig
) -> OpenedRoots:
    """What people opened before is open again, and where somebody can be asked, more may be opened."""
    asks = rules.outside == "ask" and rules.restriction is None
    boundary = _boundary(state) if asks else Boundary(homes=(), own=())
    house.boundary = boundary if asks and not rules.unattended else None
    outside = OpenedRoots(house, stores, boundary, session_id, in_force=asks)
    outside.refresh()
    return outside


def _session(terms: SessionOptions, ground: SessionResources) -> Session:
    """All but what it offers."""
    state, settings, root, folder = terms.state, terms.settings, ground.root, ground.folder
    journal = SessionJournal(ground.database, terms.session_id, ground.runner.id)
    return Session(
        id=terms.session_id,
        folder=folder,
        workspace=ground.workspace,
        skills=_skills(terms, ground.workspace, journal),
        rules=terms.rules,
        journal=journal,
        chain=ground.chain,
        locks=Locks(state.locks()),
        outputs=StoredOutputs(Blobs(state.blobs()), ground.database),
        recorder=_recorder(terms, ground),
        commands=CommandEnvironment(
            settings, state.path, os.environ, terms.variables, lambda: ground.workspace.sensitive_paths
        ),
        background=BackgroundWork(folder, journal, settings.limits, root),
        opened_roots=_outside(terms, ground),
        notes=state.memories(root),
        granted={"session": os.path.join(folder, GRANTED), "workspace": state.granted(root)},
        crashes=state.crashes,
        characters=settings.results.characters,
        batch_characters=settings.results.batch_characters,
        repair=terms.repair,
        preview_enabled=settings.preview != "never",
        foreign=_other_servers(terms, state.servers(root), journal) if terms.sources else None,
    )


def _parts(session: Session, settings: Settings) -> ToolServices:
    return ToolServices(
        seen=session.journal,
        outputs=session.outputs,
        records=session.recorder,
        recorder=lambda: session.recorder,
        commands=session.commands,
        background=session.background,
        settings=settings,
        notes=session.notes,
        skills=session.skills,
        unattended=session.rules.unattended,
    )


def _recorder(terms: SessionOptions, ground: SessionResources) -> Recorder:
    settings = terms.settings
    folder, previews = (
        terms.state.changes(ground.root),
        (parse_size(settings.limits.preview), parse_size(settings.limits.waiting)),
    )
    history = History(folder, settings.journal.durability, days=settings.undo.days, previews=previews)
    return Recorder(ground.workspace, history, terms.session_id, ground.runner.id)


def _outside(terms: SessionOptions, ground: SessionResources) -> OpenedRoots:
    stores: dict[Scope, GrantedFolders] = {
        "session": GrantedFolders(os.path.join(ground.folder, OPENED)),
        "workspace": GrantedFolders(terms.state.opened(ground.root)),
    }
    return build_opened_roots(ground.workspace, stores, terms.session_id, terms.state, terms.rules)


def _skills(terms: SessionOptions, house: Workspace, journal: SessionJournal) -> SessionSkills:
    def places() -> "tuple[SkillFolder, ...]":
        from handrail.skills.finding import list_skill_folders  # noqa: PLC0415  only where skills are used

        return list_skill_folders(terms.settings, os.environ)

    disabled = terms.settings.skills.disable
    return SessionSkills(house, ActiveSkills(journal), places, disabled, lambda: _boundary(terms.state))


def _boundary(state: StateFolder) -> Boundary:
    return build_boundary(state.path, resolve_user_file(os.environ), MANAGED_FILE)


def _other_servers(terms: SessionOptions, folder: str, journal: SessionJournal) -> "ForeignCatalog":
    from handrail.protocol.events import Warning as WarningEvent  # noqa: PLC0415  few have other servers
    from handrail.runtime.foreign.catalog import ForeignCatalog  # noqa: PLC0415
    from handrail.runtime.foreign.pins import PinStore  # noqa: PLC0415
    from handrail.store.grants import KnownTools  # noqa: PLC0415

    def warn(code: str, text: str) -> None:
        journal.append((WarningEvent, {"code": code, "text": text}))
        journal.deliver()

    known, disable = PinStore(KnownTools(folder)), terms.settings.tools.disable
    return ForeignCatalog(terms.sources, known, terms.rules.servers, warn, *disable)


# § [runtime.opening] Opens a session, and closes again what was opened when something after it cannot be.


def open_session(terms: SessionOptions) -> tuple[Session, Database, Runner]:
    """The session on these terms, and what is closed with it besides what it holds itself."""
    if terms.sources:
        from handrail.runtime.foreign.catalog import check_sources  # noqa: PLC0415  few have other servers

        check_sources(terms.sources)
    root = os.path.realpath(terms.workspace)
    _refuse_overlaps(root, terms)
    custom = (*terms.custom, *_tools_of(terms.settings))
    with ExitStack() as opened:
        ground = _lay_ground(root, terms, opened)
        session = build_session(terms, ground, custom)
        opened.pop_all()
    return session, ground.database, ground.runner


@contextmanager
def close_on_failure(sources: "tuple[ToolSource, ...]") -> Generator[None]:
    """Other servers that are to be a session's: ended where there comes to be none."""
    try:
        yield
    except BaseException:
        if sources:
            from handrail.runtime.foreign.catalog import close_sources  # noqa: PLC0415  few have other servers

            close_sources(sources)
        raise


def load_project_tools(workspace: str) -> list[Tool]:
    """The tools that a workspace brings, for who trusts it."""
    folder = os.path.join(workspace, ".handrail", "tools")
    if not os.path.isdir(folder):
        return []
    from handrail.runtime.registry import load_folder_tools  # noqa: PLC0415  few have any

    return load_folder_tools(folder)


def _tools_of(settings: Settings) -> list[Tool]:
    """Custom tools that the user's own settings ask for; a workspace brings none."""
    if not settings.tools.folders and not settings.tools.installed:
        return []
    from handrail.runtime.registry import load_configured_tools  # noqa: PLC0415  few have any

    return load_configured_tools(settings)


def _lay_ground(root: str, terms: SessionOptions, opened: ExitStack) -> SessionResources:
    """Opens what a session stands on."""
    terms.state.make()
    folder = terms.state.session(root, terms.session_id)
    save_workspace_path(terms.state.home(root), root)
    workspace = opened.enter_context(_open_workspace(terms, folder))
    path, durability = os.path.join(folder, "journal.db"), terms.settings.journal.durability
    return SessionResources(
        root=root,
        folder=folder,
        workspace=workspace,
        database=opened.enter_context(closing(Database(path, durability))),
        runner=opened.enter_context(closing(Runner(folder))),
        chain=opened.enter_context(closing(AuditChain(terms.state.audit))),
    )


def _open_workspace(terms: SessionOptions, folder: str) -> Workspace:
    files = os.path.join(folder, "files")
    make_private(files)
    extra = [Root(path, writable=False) for path in terms.settings.paths.read_only]
    extra += [Root(path) for path in terms.settings.paths.writable]
    kernel = None if terms.resolver is None else terms.resolver == "kernel"
    return Workspace(terms.workspace, *extra, Root(files), kernel=kernel)


def _refuse_overlaps(root: str, terms: SessionOptions) -> None:
    """The agent must not reach its own journal, audit or approvals."""
    own, paths = os.path.realpath(terms.state.path), terms.settings.paths
    for folder in (root, *map(os.path.realpath, (*paths.read_only, *paths.writable))):
        if os.path.commonpath((own, folder)) in {own, folder}:
            text = f"the folder {folder} and the state folder {own} lie in one another. Set HANDRAIL_STATE_DIR."
            raise UsageError(text)


# § [runtime.forking] A second session that goes another way from here.


def fork_session(session: Session, session_id: str) -> str:
    """Begins a session of the same workspace with the transcript of this one; its id."""
    folder = os.path.join(os.path.dirname(session.folder), check_session_id(session_id))
    make_private(folder)
    fork_journal(session.journal, os.path.join(folder, "journal.db"), session_id)
    return session_id
