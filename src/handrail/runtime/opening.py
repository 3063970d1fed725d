"""Opens a session: puts the rooms together, and takes them apart again when something cannot be opened."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Literal

from handrail.changes.history import History
from handrail.changes.recorder import Recorded, Recorder
from handrail.policy.verdict import Rules
from handrail.protocol.error import ToolError, UsageError
from handrail.protocol.permission import Permission, Scope
from handrail.runtime.background import BackgroundWork
from handrail.runtime.locks import Locks
from handrail.runtime.outputs import KeptOutputs
from handrail.runtime.outside import OutsideFolders, boundary_of
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
from handrail.store.memories import Memories
from handrail.store.opened import OpenedFolders
from handrail.store.runner import Runner
from handrail.tools.apply_patch import apply_patch_tool
from handrail.tools.commands import Commands
from handrail.tools.companions.display import display_tool
from handrail.tools.companions.memory import memory_tool
from handrail.tools.companions.question import question_tool
from handrail.tools.companions.skill_control import skill_control_tool
from handrail.tools.companions.skill_list import skill_list_tool
from handrail.tools.companions.todo import todo_tool
from handrail.tools.contract import Background, Outputs, Seen, Tool
from handrail.tools.delete import delete_tool
from handrail.tools.edit import edit_tool
from handrail.tools.exec import exec_tool
from handrail.tools.find import find_tool
from handrail.tools.grep import grep_tool
from handrail.tools.ls import ls_tool
from handrail.tools.multi_edit import multi_edit_tool
from handrail.tools.process import process_tool
from handrail.tools.read import read_tool
from handrail.tools.searching import Searching
from handrail.tools.write import write_tool
from handrail.workspace.current import Current
from handrail.workspace.outside import Boundary
from handrail.workspace.root import Root
from handrail.workspace.walk import Landing
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.changes.planned import Planned
    from handrail.process.sessions.session import ProcessSession
    from handrail.process.sessions.sessions import ProcessSessions
    from handrail.protocol.skill import SkillEntry
    from handrail.skills.finding import Found
    from handrail.skills.skill import Place, Skill
    from handrail.store.change_log import Step
    from handrail.tools.companions.skill_control import SkillBook
    from handrail.tools.saving import Records

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
) -> tuple[Session, Database, Runner]:
    root = os.path.realpath(workspace)
    for other in (root, *map(os.path.realpath, (*settings.paths.read_only, *settings.paths.writable))):
        _refuse_overlap(other, state)
    found = _tools_of(settings)
    state.make()
    folder = state.session(root, session_id)
    with ExitStack() as opened:  # what was opened is closed again when something after it cannot be
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
        memories = Memories(state.memories(root))
        background = BackgroundWork(folder, journal, settings.limits, root)
        base = _base_tools(
            journal,
            outputs,
            recorder,
            commands,
            background,
            settings,
            lambda: recorder,
            memories,
            unattended=rules.unattended,
        )
        skills = _skills(house, journal, settings, state)
        registry = Registry((*base, *_skill_tools(skills)), (*custom, *found))
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
            memories=memories,
            granted={"session": os.path.join(folder, GRANTED), "workspace": state.granted(root)},
            crashes=state.crashes,
            characters=settings.results.characters,
            batch_characters=settings.results.batch_characters,
            repair=repair,
            tries=settings.preview != "never",
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


def _journal(folder: str) -> str:
    return os.path.join(folder, "journal.db")


def offered(settings: Settings) -> Offer:
    """The tools that a session with these settings offers. They describe themselves; without a session none can run."""
    nothing = _NoSession()
    commands = Commands(settings, "", {})
    base = _base_tools(nothing, nothing, nothing, commands, nothing, settings, nothing.recorder, Memories(""))
    registry = Registry((*base, *_skill_tools(nothing)), _tools_of(settings))
    tools = settings.tools
    return Offer(registry, enable=tools.enable, disable=tools.disable, deny=tools.deny)


class _NoSession:
    """What the tools need of a session, where there is none."""

    durable = False
    idle_seconds = 0.0
    folder = ""

    @property
    def awaited(self) -> dict[str, str]:
        return {}

    @property
    def sessions(self) -> "ProcessSessions":
        raise ToolError("UNAVAILABLE", "Without a session nothing runs.")

    def recorder(self) -> Recorder:
        raise ToolError("UNAVAILABLE", "Without a session nothing is changed.")

    def make_room(self) -> None:
        pass

    def entries(self) -> "tuple[SkillEntry, ...]":
        return ()

    def found(self) -> "Found":
        raise ToolError("UNAVAILABLE", "Without a session no skill is active.")

    def skill(self, name: str) -> "Skill | None":  # noqa: ARG002  the protocol names it
        return None

    def activate(self, skill: "Skill") -> object:  # noqa: ARG002  the protocol names it
        return self.found()

    def deactivate(self, name: str) -> bool:  # noqa: ARG002  as above
        return False

    def active_names(self) -> tuple[str, ...]:
        return ()

    def reaches(self, folder: str) -> bool:  # noqa: ARG002  as above
        return False

    def told_begun(self, process: "ProcessSession") -> None:
        pass

    def told_ended(self, process: "ProcessSession") -> None:
        pass

    def forget(self, process: "ProcessSession") -> None:
        pass

    def seen(self, path: str) -> bytes | None:  # noqa: ARG002  the protocol names it
        return None

    def mark_seen(self, path: str, mark: bytes) -> None:
        pass

    def open(self, call_id: str) -> int:
        raise ToolError("NOT_FOUND", f"There is no kept output {call_id[:80]!r}.")

    def content(self, digest: str) -> bytes | None:  # noqa: ARG002  the protocol names it
        return None

    def keep(self, before: Current, landing: Landing) -> None:
        pass

    def keep_bytes(self, digest: str, data: bytes) -> None:
        pass

    def keep_link(self, landing: Landing) -> None:
        pass

    def carry_out(self, temporary: str, steps: "tuple[Step, ...]") -> "list[Step]":  # noqa: ARG002  as above
        return []

    def record(self, call_id: str, planned: "Planned", work: "Callable[[], tuple[Step, ...]]") -> Recorded:  # noqa: ARG002
        raise ToolError("UNAVAILABLE", "Without a session nothing is changed.")


def _base_tools(
    seen: Seen,
    outputs: Outputs,
    recorder: "Records",
    commands: Commands,
    background: Background,
    settings: Settings,
    recorder_of: Callable[[], Recorder],
    memories: Memories,
    *,
    unattended: bool = False,
) -> tuple[Tool, ...]:
    """The tools of our own, each with what it needs."""
    searching = Searching(settings.search.ignore, settings.search.engine)
    return (
        read_tool(seen, outputs, images=settings.read.images),
        write_tool(seen, recorder),
        edit_tool(seen, recorder),
        find_tool(searching),
        grep_tool(searching, outputs),
        ls_tool(settings.search.ignore),
        exec_tool(commands, background, recorder_of),
        process_tool(background),
        apply_patch_tool(seen, recorder),
        multi_edit_tool(seen, recorder),
        delete_tool(seen, recorder),
        display_tool(),
        question_tool(unattended=unattended),
        todo_tool(),
        memory_tool(memories),
    )


def _skills(house: Workspace, journal: Journal, settings: Settings, state: StateFolder) -> Skills:
    def places() -> "tuple[Place, ...]":
        from handrail.skills.finding import places_of  # noqa: PLC0415  only where skills are used

        return places_of(settings, os.environ)

    def boundary() -> Boundary:
        return boundary_of(state.path, user_file(os.environ), MANAGED_FILE)

    return Skills(house, ActiveSkills(journal), places, settings.skills.disable, boundary)


def _skill_tools(skills: "SkillBook") -> tuple[Tool, ...]:
    return skill_list_tool(skills.entries), skill_control_tool(skills)


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
    from handrail.runtime.discovery import installed_tools, tools_in_folder  # noqa: PLC0415  few have any

    found = [tool for folder in settings.tools.folders for tool in tools_in_folder(folder)]
    return found + installed_tools() if settings.tools.installed else found


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
