"""Opens a session: puts the rooms together, and takes them apart again when something cannot be opened."""

import os
from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Literal

from handrail.changes.history import History
from handrail.changes.recorder import Recorder
from handrail.policy.verdict import Rules
from handrail.protocol.error import UsageError
from handrail.protocol.permission import Permission, Scope
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
from handrail.store.active_skills import ActiveSkills
from handrail.store.audit import Chain
from handrail.store.blobs import Blobs
from handrail.store.database import Database
from handrail.store.folder import GRANTED, OPENED, StateFolder, make_private
from handrail.store.journal import Journal
from handrail.store.opened import OpenedFolders
from handrail.store.runner import Runner
from handrail.tools.commands import Commands
from handrail.tools.contract import Tool
from handrail.workspace.outside import Boundary
from handrail.workspace.root import Root
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.runtime.foreign.servers import OtherServers
    from handrail.runtime.sources import ToolSource
    from handrail.skills.skill import Place

Resolver = Literal["kernel", "walk"]
"""Who resolves paths: openat2 or our own walk. By default what this machine can do."""


def open_session(
    *,
    workspace: str,
    session_id: str,
    state: StateFolder,
    settings: Settings,
    rules: Rules,
    custom: tuple[Tool, ...],
    deny: tuple[Permission, ...],
    repair: str | None,
    resolver: Resolver | None,
    variables: Mapping[str, str] | None,
    sources: "tuple[ToolSource, ...]" = (),
) -> tuple[Session, Database, Runner]:
    root = os.path.realpath(workspace)
    with ExitStack() as opened:  # what was opened is closed again when something after it cannot be
        if sources:
            _take_over(sources, opened)
        for other in (root, *map(os.path.realpath, (*settings.paths.read_only, *settings.paths.writable))):
            _refuse_overlap(other, state)
        found = _tools_of(settings)
        state.make()
        folder = state.session(root, session_id)
        house = opened.enter_context(_open_workspace(workspace, settings, folder, resolver))
        database = opened.enter_context(closing(Database(_journal(folder), settings.journal.durability)))
        runner = opened.enter_context(closing(Runner(folder)))
        journal = Journal(database, session_id, runner.id)
        outputs = KeptOutputs(Blobs(state.blobs()), database)
        history = History(state.changes(root), settings.journal.durability, days=settings.undo.days)
        recorder = Recorder(house, history, session_id, runner.id)
        stores: dict[Scope, OpenedFolders] = {
            "session": OpenedFolders(os.path.join(folder, OPENED)),
            "workspace": OpenedFolders(state.opened(root)),
        }
        outside = open_outside(house, stores, session_id, state, rules)
        commands = Commands(settings, state.path, os.environ, variables)
        background = BackgroundWork(folder, journal, settings.limits, root)
        skills = _skills(house, journal, settings, state)
        parts = Parts(
            seen=journal,
            outputs=outputs,
            records=recorder,
            recorder=lambda: recorder,
            commands=commands,
            background=background,
            settings=settings,
            notes=state.memories(root),
            skills=skills,
            unattended=rules.unattended,
        )
        registry = Registry(own_tools(parts), (*custom, *found))
        skills.attach(Offer(registry, enable=settings.tools.enable, disable=settings.tools.disable, deny=deny))
        session = Session(
            id=session_id,
            folder=folder,
            workspace=house,
            skills=skills,
            rules=rules,
            journal=journal,
            chain=Chain(state.audit),
            locks=Locks(state.locks()),
            outputs=outputs,
            recorder=recorder,
            commands=commands,
            background=background,
            outside=outside,
            notes=state.memories(root),
            granted={"session": os.path.join(folder, GRANTED), "workspace": state.granted(root)},
            crashes=state.crashes,
            characters=settings.results.characters,
            batch_characters=settings.results.batch_characters,
            repair=repair,
            tries=settings.preview != "never",
            others=_other_servers(sources, state.servers(root), rules, journal) if sources else None,
        )
        opened.pop_all()
    return session, database, runner


def open_outside(
    house: Workspace, stores: "dict[Scope, OpenedFolders]", session_id: str, state: StateFolder, rules: Rules
) -> OutsideFolders:
    """What people opened before is open again, and where somebody can be asked, more may be opened."""
    asks = rules.outside == "ask" and rules.restriction is None
    boundary = boundary_of(state.path, user_file(os.environ), MANAGED_FILE) if asks else Boundary(homes=(), own=())
    house.boundary = boundary if asks and not rules.unattended else None
    outside = OutsideFolders(house, stores, boundary, session_id, in_force=asks)
    outside.refresh()
    return outside


def _take_over(sources: "tuple[ToolSource, ...]", opened: ExitStack) -> None:
    from handrail.runtime.foreign.taking_over import close_all, refuse_unfit  # noqa: PLC0415  few have other servers

    opened.callback(close_all, sources)
    refuse_unfit(sources)


def _other_servers(sources: "tuple[ToolSource, ...]", folder: str, rules: Rules, journal: Journal) -> "OtherServers":
    from handrail.protocol.event import Warning as WarningEvent  # noqa: PLC0415  as above
    from handrail.runtime.foreign.known import Known  # noqa: PLC0415
    from handrail.runtime.foreign.servers import OtherServers  # noqa: PLC0415
    from handrail.store.known_tools import KnownTools  # noqa: PLC0415

    def warn(code: str, text: str) -> None:
        journal.append((WarningEvent, {"code": code, "text": text}))
        journal.deliver()

    return OtherServers(sources, Known(KnownTools(folder)), rules.servers, warn)


def _journal(folder: str) -> str:
    return os.path.join(folder, "journal.db")


def _skills(house: Workspace, journal: Journal, settings: Settings, state: StateFolder) -> Skills:
    def places() -> "tuple[Place, ...]":
        from handrail.skills.finding import places_of  # noqa: PLC0415  only where skills are used

        return places_of(settings, os.environ)

    def boundary() -> Boundary:
        return boundary_of(state.path, user_file(os.environ), MANAGED_FILE)

    return Skills(house, ActiveSkills(journal), places, settings.skills.disable, boundary)


def tools_of_project(workspace: str) -> list[Tool]:
    """The tools that a workspace brings, for who trusts it."""
    folder = os.path.join(workspace, ".handrail", "tools")
    if not os.path.isdir(folder):
        return []
    from handrail.runtime.discovery import tools_in_folder  # noqa: PLC0415  few have any

    return tools_in_folder(folder)


def _tools_of(settings: Settings) -> list[Tool]:
    """Custom tools that the user's own settings ask for; a workspace brings none."""
    if not settings.tools.folders and not settings.tools.installed:
        return []
    from handrail.runtime.discovery import tools_of_settings  # noqa: PLC0415  few have any

    return tools_of_settings(settings)


def _open_workspace(spelled: str, settings: Settings, folder: str, resolver: Resolver | None) -> Workspace:
    files = os.path.join(folder, "files")
    make_private(files)
    extra = [Root(path, writable=False) for path in settings.paths.read_only]
    extra += [Root(path) for path in settings.paths.writable]
    return Workspace(spelled, *extra, Root(files), kernel=None if resolver is None else resolver == "kernel")


def _refuse_overlap(root: str, state: StateFolder) -> None:
    """The agent must not reach its own journal, audit or approvals."""
    own = os.path.realpath(state.path)
    if os.path.commonpath((own, root)) in {own, root}:
        raise UsageError(f"the folder {root} and the state folder {own} lie in one another. Set HANDRAIL_STATE_DIR.")
