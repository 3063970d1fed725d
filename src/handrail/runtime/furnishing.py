"""Furnishes a session: from what was agreed on and opened for it, everything that the steps and the tools work with."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from handrail.changes.history import History
from handrail.changes.recorder import Recorder
from handrail.policy.verdict import Rules
from handrail.protocol.permission import Scope
from handrail.runtime.background import BackgroundWork
from handrail.runtime.locks import Locks
from handrail.runtime.outputs import KeptOutputs
from handrail.runtime.outside import OutsideFolders, boundary_of
from handrail.runtime.own_tools import Parts, own_tools
from handrail.runtime.registry import Offer, Registry
from handrail.runtime.session import Session
from handrail.runtime.skills import Skills
from handrail.settings import Settings, user_file
from handrail.settings.location import MANAGED_FILE
from handrail.settings.units import size
from handrail.store.active_skills import ActiveSkills
from handrail.store.audit import Chain
from handrail.store.blobs import Blobs
from handrail.store.database import Database
from handrail.store.folder import GRANTED, OPENED, StateFolder
from handrail.store.journal import Journal
from handrail.store.opened import OpenedFolders
from handrail.store.runner import Runner
from handrail.tools.commands import Commands
from handrail.tools.contract import Tool
from handrail.workspace.outside import Boundary
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.foreign.servers import OtherServers
    from handrail.runtime.sources import ToolSource
    from handrail.skills.skill import Place

Resolver = Literal["kernel", "walk"]
"""Who resolves paths: openat2 or our own walk. By default what this machine can do."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened on."""

    workspace: str
    session_id: str
    state: StateFolder
    settings: Settings
    rules: Rules
    custom: tuple[Tool, ...]
    repair: str | None
    resolver: Resolver | None
    variables: Mapping[str, str] | None
    sources: "tuple[ToolSource, ...]"


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What was opened for it, and is closed with it."""

    root: str
    """The workspace's real path."""
    folder: str
    """The session's own."""
    workspace: Workspace
    database: Database
    runner: Runner
    chain: Chain


def furnish(terms: Terms, ground: Ground, custom: tuple[Tool, ...]) -> Session:
    """The session, with its tools."""
    session, tools = _session(terms, ground), terms.settings.tools
    registry = Registry(own_tools(_parts(session, terms.settings)), custom)
    session.skills.attach(Offer(registry, enable=tools.enable, disable=tools.disable, deny=terms.rules.denied))
    return session


def open_outside(
    house: Workspace, stores: "dict[Scope, OpenedFolders]", session_id: str, state: StateFolder, rules: Rules
) -> OutsideFolders:
    """What people opened before is open again, and where somebody can be asked, more may be opened."""
    asks = rules.outside == "ask" and rules.restriction is None
    boundary = _boundary(state) if asks else Boundary(homes=(), own=())
    house.boundary = boundary if asks and not rules.unattended else None
    outside = OutsideFolders(house, stores, boundary, session_id, in_force=asks)
    outside.refresh()
    return outside


def _session(terms: Terms, ground: Ground) -> Session:
    """All but what it offers."""
    state, settings, root, folder = terms.state, terms.settings, ground.root, ground.folder
    journal = Journal(ground.database, terms.session_id, ground.runner.id)
    return Session(
        id=terms.session_id,
        folder=folder,
        workspace=ground.workspace,
        skills=_skills(terms, ground.workspace, journal),
        rules=terms.rules,
        journal=journal,
        chain=ground.chain,
        locks=Locks(state.locks()),
        outputs=KeptOutputs(Blobs(state.blobs()), ground.database),
        recorder=_recorder(terms, ground),
        commands=Commands(settings, state.path, os.environ, terms.variables),
        background=BackgroundWork(folder, journal, settings.limits, root),
        outside=_outside(terms, ground),
        notes=state.memories(root),
        granted={"session": os.path.join(folder, GRANTED), "workspace": state.granted(root)},
        crashes=state.crashes,
        characters=settings.results.characters,
        batch_characters=settings.results.batch_characters,
        repair=terms.repair,
        tries=settings.preview != "never",
        others=_other_servers(terms, state.servers(root), journal) if terms.sources else None,
    )


def _parts(session: Session, settings: Settings) -> Parts:
    return Parts(
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


def _recorder(terms: Terms, ground: Ground) -> Recorder:
    settings = terms.settings
    folder, previews = terms.state.changes(ground.root), (size(settings.limits.preview), size(settings.limits.waiting))
    history = History(folder, settings.journal.durability, days=settings.undo.days, previews=previews)
    return Recorder(ground.workspace, history, terms.session_id, ground.runner.id)


def _outside(terms: Terms, ground: Ground) -> OutsideFolders:
    stores: dict[Scope, OpenedFolders] = {
        "session": OpenedFolders(os.path.join(ground.folder, OPENED)),
        "workspace": OpenedFolders(terms.state.opened(ground.root)),
    }
    return open_outside(ground.workspace, stores, terms.session_id, terms.state, terms.rules)


def _skills(terms: Terms, house: Workspace, journal: Journal) -> Skills:
    def places() -> "tuple[Place, ...]":
        from handrail.skills.finding import places_of  # noqa: PLC0415  only where skills are used

        return places_of(terms.settings, os.environ)

    disabled = terms.settings.skills.disable
    return Skills(house, ActiveSkills(journal), places, disabled, lambda: _boundary(terms.state))


def _boundary(state: StateFolder) -> Boundary:
    return boundary_of(state.path, user_file(os.environ), MANAGED_FILE)


def _other_servers(terms: Terms, folder: str, journal: Journal) -> "OtherServers":
    from handrail.protocol.event import Warning as WarningEvent  # noqa: PLC0415  few have other servers
    from handrail.runtime.foreign.known import Known  # noqa: PLC0415
    from handrail.runtime.foreign.servers import OtherServers  # noqa: PLC0415
    from handrail.store.known_tools import KnownTools  # noqa: PLC0415

    def warn(code: str, text: str) -> None:
        journal.append((WarningEvent, {"code": code, "text": text}))
        journal.deliver()

    known, disable = Known(KnownTools(folder)), terms.settings.tools.disable
    return OtherServers(terms.sources, known, terms.rules.servers, warn, *disable)
