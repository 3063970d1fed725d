"""Furnishes a session: from what was agreed on and opened for it, everything that the steps and the tools work with."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from handrail.changes.history import History
from handrail.changes.recorder import Recorder
from handrail.policy.config import PolicyConfig
from handrail.protocol.permissions import Scope
from handrail.runtime.background import BackgroundWork
from handrail.runtime.locks import Locks
from handrail.runtime.outputs import StoredOutputs
from handrail.runtime.outside import OpenedRoots, build_boundary
from handrail.runtime.own_tools import ToolServices, list_builtin_tools
from handrail.runtime.registry import ToolRegistry, ToolSet
from handrail.runtime.session import Session
from handrail.runtime.skills import SessionSkills
from handrail.settings import Settings, resolve_user_file
from handrail.settings.paths import MANAGED_FILE
from handrail.settings.units import parse_size
from handrail.store.audit import AuditChain
from handrail.store.blobs import Blobs
from handrail.store.database import Database
from handrail.store.grants import GrantedFolders
from handrail.store.journal import SessionJournal
from handrail.store.runner import Runner
from handrail.store.state_dir import GRANTED, OPENED, StateFolder
from handrail.store.transcript import ActiveSkills
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import Tool
from handrail.workspace.roots import Boundary
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.foreign.servers import ForeignCatalog
    from handrail.runtime.sources import ToolSource
    from handrail.skills.skill import SkillFolder

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
        commands=CommandEnvironment(settings, state.path, os.environ, terms.variables),
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
    from handrail.runtime.foreign.known import PinStore  # noqa: PLC0415
    from handrail.runtime.foreign.servers import ForeignCatalog  # noqa: PLC0415
    from handrail.store.grants import KnownTools  # noqa: PLC0415

    def warn(code: str, text: str) -> None:
        journal.append((WarningEvent, {"code": code, "text": text}))
        journal.deliver()

    known, disable = PinStore(KnownTools(folder)), terms.settings.tools.disable
    return ForeignCatalog(terms.sources, known, terms.rules.servers, warn, *disable)
