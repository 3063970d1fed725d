"""A session: one conversation with one workspace."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from handrail.changes.history import History
from handrail.changes.recorder import Recorder
from handrail.policy.config import PolicyConfig
from handrail.protocol.calls import ToolCall
from handrail.protocol.errors import StoreError, UsageError
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.permissions import Scope
from handrail.runtime.background import BackgroundWork
from handrail.runtime.grants import Grants, OpenedRoots, build_boundary
from handrail.runtime.locks import Locks, SessionQueue
from handrail.runtime.registry import (
    ToolRegistry,
    ToolServices,
    ToolSet,
    load_configured_tools,
    load_tool_files,
)
from handrail.runtime.skills import SessionSkills
from handrail.runtime.stored_output import StoredOutputs
from handrail.settings import Settings
from handrail.settings.units import parse_size
from handrail.store.audit import AuditChain, AuditRecord, forget_runner, note_audited
from handrail.store.blobs import Blobs
from handrail.store.conversation_state import ActiveSkills
from handrail.store.database import Database
from handrail.store.grants import GrantedFolders, GrantFiles, KnownTools
from handrail.store.journal import SessionJournal
from handrail.store.runner import Runner
from handrail.store.state_dir import GRANTED, OPENED, StateFolder, check_session_id, make_private, save_workspace_path
from handrail.tools.command_environment import CommandEnvironment
from handrail.tools.tool import Tool
from handrail.workspace.roots import Boundary, Root, open_extra_roots
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.foreign.catalog import ForeignCatalog
    from handrail.runtime.foreign.source import ToolSource
    from handrail.skills.skill import SkillFolder
    from handrail.store.shared_store import SharedStore

Resolver = Literal["kernel", "walk"]
"""How paths are resolved: by openat2, or by a walk in Python. The default is the best that the machine can do."""


_CHECKPOINT_CALLS = 64
"""Records between two checkpoints of the audit. After a crash at most these are looked up again."""


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
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
    ends_background: bool
    """Whether closing the session also ends its background processes."""
    helpers: tuple[str, ...] = ()
    """Tools that only a dialect calls."""
    splits_streams: bool = False
    """Whether commands have two output streams."""
    store: "SharedStore | None" = None
    """The database of a fleet, which the caller closes. None: the files of the state folder."""


class SessionResources(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a session holds open."""

    root: str
    """The real path of the workspace."""
    folder: str
    workspace: Workspace
    database: Database
    chain: AuditChain
    runner: Runner
    exit_stack: ExitStack
    """Closes everything that the session opened, the last first."""


class CancelTokens:
    """The calls that run in this process, by id, and which of them were cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, int] = {}
        """How many threads run each call. Two may use one id: the second waits for the result of the first."""
        self.requested: set[str] = set()
        """Cancelled calls. A call stays cancelled until its last thread has ended it."""

    def reserve(self, call_id: str) -> None:
        """Makes a future call cancellable. `end` forgets it, also if it never began."""
        self._running.setdefault(call_id, 0)

    def is_reserved(self, call_id: str) -> bool:
        """Whether the id was reserved for a call that has not begun."""
        return self._running.get(call_id) == 0

    def begin(self, call_ids: Iterable[str]) -> None:
        with self._lock:
            for call_id in call_ids:
                self._running[call_id] = self._running.get(call_id, 0) + 1

    def end(self, call_ids: Iterable[str]) -> None:
        """Removes calls that have ended or wait for an answer."""
        with self._lock:
            for call_id in call_ids:
                left = self._running.get(call_id, 0) - 1
                if left > 0:
                    self._running[call_id] = left
                else:
                    self._running.pop(call_id, None)
                    self.requested.discard(call_id)

    def cancel(self, call_id: str) -> bool:
        """Cancels a call. False if it does not run in this process."""
        with self._lock:
            is_known = call_id in self._running
            if is_known:
                self.requested.add(call_id)
            return is_known


class Session(msgspec.Struct, kw_only=True, eq=False):
    """An open session with all that its calls use."""

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
    grants: Grants
    resources: SessionResources
    notes: str
    """The folder of the notes about the workspace."""
    crashes: Callable[[], str]
    preview_listeners: list[Callable[[ToolCall, str], None]] = []
    """Get a call and new output of its preview."""
    characters: int = 30_000
    batch_characters: int = 100_000
    repair: str | None = None
    preview_enabled: bool = True
    keeps_empty_previews: bool = True
    lock_seconds: float = 5.0
    """How long a call waits for a file that another session has locked."""
    queue_seconds: float = 660.0
    """How long a call waits for a call of the same session in another process."""
    since_checkpoint: int = 0
    """Records added since the journal last stored the position in the audit."""
    pending_audit: list[AuditRecord] = []
    """Audit records that could not be written yet."""
    answering: set[int] = set()
    """The threads that answer their call before the audit gets its record."""
    queue: SessionQueue = msgspec.field(default_factory=SessionQueue)
    closing: threading.Lock = msgspec.field(default_factory=threading.Lock)
    """Orders the records of finished calls."""
    cancelled: threading.Event = msgspec.field(default_factory=threading.Event)
    """Set while all calls are cancelled."""
    cancel_tokens: CancelTokens = msgspec.field(default_factory=CancelTokens)
    foreign: "ForeignCatalog | None" = None
    turn: str = ""
    """The turn that changes belong to. If empty, each batch is a turn."""
    ends_background: bool
    splits_streams: bool = False

    @property
    def offer(self) -> ToolSet:
        """The tools that are offered now. Active skills may restrict them."""
        return self.skills.offer

    def refresh_servers(self) -> None:
        """Offers the tools that other servers list now."""
        if (foreign := self.foreign) is not None:
            foreign.refresh(lambda: self.skills.renew(lambda offer: offer.with_foreign(foreign.extend_registry)))

    def is_cancelled(self, call_id: str) -> bool:
        return self.cancelled.is_set() or call_id in self.cancel_tokens.requested

    def flush_audit(self) -> None:
        """Appends the pending audit records. The caller holds `closing`."""
        while self.pending_audit:
            self.chain.append(self.pending_audit[0])
            del self.pending_audit[0]
            self.since_checkpoint += 1
        if self.since_checkpoint >= _CHECKPOINT_CALLS:
            self.since_checkpoint = 0
            note_audited(self.journal, self.chain.known_size)

    def run_before_audit(self, work: Callable[[], object]) -> None:
        """Does work of this thread. The audit gets the records of its calls afterwards."""
        self.answering.add(threading.get_ident())
        try:
            work()
        finally:
            with self.closing, suppress(StoreError):  # the next call tries again
                self.answering.discard(threading.get_ident())
                self.flush_audit()

    def close(self) -> None:
        """Closes all resources. One that cannot be closed does not keep the others open."""
        self.resources.exit_stack.close()


def open_session(options: SessionOptions) -> Session:
    """Opens a session. If that fails, nothing stays open."""
    if options.sources:
        from handrail.runtime.foreign.catalog import check_sources  # noqa: PLC0415  few sessions have servers

        check_sources(options.sources)
    root = os.path.realpath(options.workspace)
    # The agent must not reach its own journal, audit or approvals.
    own, paths = os.path.realpath(options.state.path), options.settings.paths
    for folder in (root, *map(os.path.realpath, (*paths.read_only, *paths.writable))):
        if os.path.commonpath((own, folder)) in {own, folder}:
            text = (
                f"the folder {folder} and the state folder {own} must not contain each other. Set HANDRAIL_STATE_DIR."
            )
            raise UsageError(text)
    custom = (*options.custom, *load_configured_tools(options.settings))
    exit_stack = ExitStack()
    try:
        resources = _open_resources(root, options, exit_stack)
        session = _build_session(options, resources)
        _register_closing(session)
        registry = ToolRegistry(_build_services(session, options), custom, options.helpers)
        tools = options.settings.tools
        offer = ToolSet(registry, enable=tools.enable, disable=tools.disable, deny=options.rules.denied)
        session.skills.attach(offer)
    except BaseException:
        exit_stack.close()
        raise
    return session


def fork_session(session: Session, session_id: str, before: int | None = None) -> str:
    """Creates another session of the workspace with a copy of the transcript. Returns its id."""
    from handrail.store.transcript import fork_journal  # noqa: PLC0415  few sessions are forked

    folder = os.path.join(os.path.dirname(session.folder), check_session_id(session_id))
    make_private(folder)
    fork_journal(session.journal, os.path.join(folder, "journal.db"), session_id, before)
    return session_id


def load_project_tools(workspace: str) -> list[Tool]:
    """Loads the custom tools of a trusted workspace. UsageError if its tool files are unusable."""
    from handrail.settings.project_tools import read_project_tools  # noqa: PLC0415  few projects have tools

    tools = read_project_tools(workspace)
    if tools is not None and tools.remark:
        raise UsageError(tools.remark)
    return load_tool_files(tools.files) if tools is not None else []


def build_opened_roots(
    workspace: Workspace, stores: dict[Scope, GrantedFolders], session_id: str, state: StateFolder, rules: PolicyConfig
) -> OpenedRoots:
    """Opens the folders that people approved before. If the rules allow it, more can be requested."""
    asks = rules.outside == "ask" and rules.restriction is None
    boundary = build_boundary(state.path) if asks else Boundary(homes=(), own=())
    workspace.boundary = boundary if asks and not rules.unattended else None
    opened_roots = OpenedRoots(workspace, stores, boundary, session_id, in_force=asks)
    opened_roots.refresh()
    return opened_roots


def _open_resources(root: str, options: SessionOptions, exit_stack: ExitStack) -> SessionResources:
    options.state.make()
    folder = options.state.session(root, options.session_id)
    save_workspace_path(options.state.home(root), root)
    path, durability = os.path.join(folder, "journal.db"), options.settings.journal.durability
    files = os.path.join(folder, "files")
    make_private(files)
    extra = open_extra_roots(options.settings.paths.read_only, options.settings.paths.writable)
    kernel = None if options.resolver is None else options.resolver == "kernel"
    store = options.store
    resources = SessionResources(
        root=root,
        folder=folder,
        workspace=exit_stack.enter_context(Workspace(options.workspace, *extra, Root(files), kernel=kernel)),
        database=exit_stack.enter_context(
            closing(Database(path, durability) if store is None else store.open_journal(path))
        ),
        chain=exit_stack.enter_context(
            closing(AuditChain(options.state.audit) if store is None else store.open_audit())
        ),
        runner=exit_stack.enter_context(closing(Runner(folder))),
        exit_stack=exit_stack,
    )
    if store is not None:
        store.begin_runner(resources.runner.id, folder, options.state.changes(root))
    return resources


def _register_closing(session: Session) -> None:
    exit_stack = session.resources.exit_stack
    exit_stack.callback(session.recorder.history.close)
    exit_stack.callback(session.commands.close)
    exit_stack.callback(_end_runner, session)
    if session.foreign is not None:
        exit_stack.callback(session.foreign.close)
    exit_stack.callback(lambda: session.background.end_all() if session.ends_background else None)
    exit_stack.callback(session.background.close)


def _end_runner(session: Session) -> None:
    """Removes the runner's file if its work is complete. Otherwise the next process that opens the session recovers."""
    runner = session.resources.runner
    end = runner.release
    try:
        with session.closing:
            session.flush_audit()
        if not session.journal.has_begun_calls():
            forget_runner(session.journal, runner.id)
            end = runner.close
    except StoreError:
        pass
    finally:
        end()


def _build_session(options: SessionOptions, resources: SessionResources) -> Session:
    state, settings, root, folder = options.state, options.settings, resources.root, resources.folder
    journal = SessionJournal(resources.database, options.session_id, resources.runner.id)
    granted: dict[Scope, GrantFiles] = {
        "session": GrantFiles(os.path.join(folder, GRANTED)),
        "workspace": GrantFiles(state.grants(root)),
    }
    opened: dict[Scope, GrantedFolders] = {
        "session": GrantedFolders(os.path.join(folder, OPENED)),
        "workspace": GrantedFolders(state.opened_folders(root)),
    }
    return Session(
        id=options.session_id,
        folder=folder,
        workspace=resources.workspace,
        skills=_build_skills(options, resources.workspace, journal),
        rules=options.rules,
        journal=journal,
        chain=resources.chain,
        locks=Locks(state.locks()),
        outputs=StoredOutputs(
            Blobs(state.blobs()) if options.store is None else options.store.open_blobs(state.blobs()),
            resources.database,
        ),
        recorder=_build_recorder(options, resources),
        commands=CommandEnvironment(
            settings, state.path, os.environ, options.variables, lambda: resources.workspace.sensitive_paths
        ),
        background=BackgroundWork(folder, journal, settings.limits, root),
        opened_roots=build_opened_roots(resources.workspace, opened, options.session_id, state, options.rules),
        grants=Grants(granted),
        resources=resources,
        notes=state.memories(root),
        crashes=state.crashes,
        characters=settings.results.characters,
        batch_characters=settings.results.batch_characters,
        repair=options.repair,
        preview_enabled=settings.preview != "never",
        keeps_empty_previews=settings.ask.empty_preview == "keep",
        foreign=_build_catalog(options, state.servers(root), journal) if options.sources else None,
        ends_background=options.ends_background,
        splits_streams=options.splits_streams,
    )


def _build_services(session: Session, options: SessionOptions) -> ToolServices:
    settings = options.settings
    services = _build_plain_services(session, settings)
    if any(name.startswith("lsp_") for name in settings.tools.enable):
        from handrail.runtime.language import open_language_servers  # noqa: PLC0415  few sessions have them

        services.lsp, services.check = open_language_servers(
            settings,
            session.rules,
            session.workspace,
            session.journal,
            options.state.path,
            session.resources.exit_stack,
        )
    return services


def _build_plain_services(session: Session, settings: Settings) -> ToolServices:
    return ToolServices(
        seen=session.journal,
        outputs=session.outputs,
        recorder=session.recorder,
        commands=session.commands,
        background=session.background,
        settings=settings,
        notes=session.notes,
        skills=session.skills,
        code_folder=StateFolder.find(session.folder).code_index,
        unattended=session.rules.unattended,
    )


def _build_recorder(options: SessionOptions, resources: SessionResources) -> Recorder:
    settings = options.settings
    previews = (parse_size(settings.limits.preview), parse_size(settings.limits.waiting))
    folder, durability = options.state.changes(resources.root), settings.journal.durability
    history = History(folder, durability, days=settings.undo.days, previews=previews, store=options.store)
    return Recorder(resources.workspace, history, options.session_id, resources.runner.id)


def _build_skills(options: SessionOptions, workspace: Workspace, journal: SessionJournal) -> SessionSkills:
    def list_folders() -> "tuple[SkillFolder, ...]":
        from handrail.skills.discovery import list_skill_folders  # noqa: PLC0415  only for sessions that use skills

        return list_skill_folders(options.settings, os.environ)

    disabled = options.settings.skills.disable
    return SessionSkills(
        workspace, ActiveSkills(journal), list_folders, disabled, lambda: build_boundary(options.state.path)
    )


def _build_catalog(options: SessionOptions, folder: str, journal: SessionJournal) -> "ForeignCatalog":
    from handrail.runtime.foreign.catalog import ForeignCatalog  # noqa: PLC0415  few sessions have servers
    from handrail.runtime.foreign.pins import PinStore  # noqa: PLC0415

    def warn(code: str, text: str) -> None:
        journal.append((WarningEvent, {"code": code, "text": text}))
        journal.deliver()

    disable = options.settings.tools.disable
    return ForeignCatalog(options.sources, PinStore(KnownTools(folder)), options.rules.servers, warn, *disable)
