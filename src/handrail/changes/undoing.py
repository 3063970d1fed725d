"""Plans an undo: the way of every file back to what it was before the chosen change sets, and what stands in it."""

import stat
from itertools import pairwise

import msgspec

from handrail.changes.carrying import MAX_IN_MEMORY_BYTES
from handrail.changes.conflicts import Conflict, LaterChanges
from handrail.changes.former import capture_extras
from handrail.changes.history import History
from handrail.changes.looking import MAX_PACKED_BYTES, PathProbe, probe_path, strip_data
from handrail.changes.manners import PLAIN_PLACEMENT, Placement
from handrail.changes.merging import ReversedFile, reverse_file_changes
from handrail.changes.opened import list_locked_dirs
from handrail.changes.ways import has_same_content, is_before_state, is_mode_change
from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.store.change_log import FileExtras, LoggedChangeSet, Step
from handrail.workspace.file_state import Content, PathState
from handrail.workspace.workspace import Workspace

_MAX_HELD_BYTES = 32 * 1024 * 1024
"""Bytes of files that are held in memory between looking and storing."""

_MAX_COMPARED_FILES = 50
"""Files that stand in the way and are compared, to see whether lines of them could be undone. With more of them
that is not offered; who asks for it gets it."""


class UndoStep(msgspec.Struct, frozen=True):
    """A file's way back, and what it is now."""

    step: Step
    found: PathState
    data: bytes | None = None
    """What it leads to, where that was never there before."""


class UndoPlan(msgspec.Struct, frozen=True):
    """An undo that can be carried out, where there is no conflict."""

    entries: tuple[LoggedChangeSet, ...]
    """What is undone, the latest first."""
    steps: tuple[UndoStep, ...]
    conflicts: tuple[Conflict, ...]
    left: int = 0
    """Places that are no longer as they were, and stay."""

    changes: tuple[int, ...] = ()
    """The changes that are undone or, where undos are undone, made again."""
    brings_back: bool = False
    placements: dict[bytes, Placement] = {}
    """How the files are brought back that were more than their states say."""
    was: tuple[FileExtras, ...] = ()
    """What files are now besides their states."""
    opened: tuple[tuple[bytes, int], ...] = ()
    """Folders that have to be opened for it, with their modes."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """What is undone, by its numbers."""
        return tuple(entry.number for entry in self.entries)


def plan_undo(workspace: Workspace, history: History, numbers: tuple[int, ...], *, lines: bool = False) -> UndoPlan:
    """The way back over change sets. With `lines`, files that were changed since lose only what is as it was."""
    entries = [_undoable(history, number) for number in sorted(numbers, reverse=True)]
    ways: list[UndoStep] = []
    conflicts: list[Conflict] = []
    left = held = 0
    looks, since = PathProbe(workspace), LaterChanges(history, entries)
    for path, chain in sorted(_chains(entries).items()):
        found = looks.at(path, keep=MAX_PACKED_BYTES if held < _MAX_HELD_BYTES else 0)
        held += len(found.current.data or b"") if found.current is not None else 0
        step = _net(path, chain)
        if step is not None and is_before_state(found.state, step):
            looks.note(path, found.state)
            if step.before != step.after:
                ways.append(UndoStep(Step(path, found.state, _end(step, found.state, chain)), found))
            continue
        rest = None
        if lines or len(conflicts) < _MAX_COMPARED_FILES:
            rest = reverse_file_changes(history, entries, path, probe_path(workspace, path, keep=MAX_IN_MEMORY_BYTES))
        if lines and rest is not None:
            ways.append(_merging_way(path, found, rest))
            left += rest.left
        else:
            shown = workspace.render_path(path)
            conflicts.append(since.conflict(path, strip_data(found), shown=shown, lines=rest is not None))
    changes, brings_back = _meant(history, entries)
    placements = _manners(entries)
    return UndoPlan(
        tuple(entries),
        tuple(ways),
        tuple(conflicts),
        left,
        changes,
        brings_back,
        placements,
        _former(workspace, ways, placements),
        _to_open(workspace, entries, ways),
    )


def _manners(entries: list[LoggedChangeSet]) -> dict[bytes, Placement]:
    """The names and attributes that files had before the changes; where a path has several, before the first."""
    placements = {path: Placement(in_place=False) for entry in entries for path in entry.body.unlinked_paths}
    for was in (was for entry in entries for was in entry.body.was):
        apart = was.linked_to is not None or was.path in placements
        placements[was.path] = Placement(
            in_place=False if apart else None, linked_to=was.linked_to, allow_copy=True, attributes=was.attributes
        )
    return placements


def _former(workspace: Workspace, ways: list[UndoStep], placements: dict[bytes, Placement]) -> tuple[FileExtras, ...]:
    """What the files are that make room for others. What is written through stays itself, and so do its names."""

    def stays(way: UndoStep) -> bool:
        now, becomes = way.found.current, way.step.after
        through = now is not None and now.status.st_nlink > 1 and becomes is not None and becomes.kind == "file"
        return is_mode_change(way.step) or (through and placements.get(way.step.path, PLAIN_PLACEMENT).in_place is None)

    return capture_extras(workspace, {way.step.path: way.found for way in ways if not stays(way)})


def _to_open(
    workspace: Workspace, entries: list[LoggedChangeSet], ways: list[UndoStep]
) -> tuple[tuple[bytes, int], ...]:
    """The closed folders that the way back leads through: those that the changes opened, made or closed themselves.
    One that a person closed since stays closed."""
    own = {path for entry in entries for path, _ in entry.body.opened}
    own |= {step.path for entry in entries for step in entry.body.steps if step.kind == "folder"}
    closed = list_locked_dirs(workspace, [way.step for way in ways]) if own else {}
    return tuple((path, mode) for path, mode in closed.items() if path in own)


def _meant(history: History, entries: list[LoggedChangeSet]) -> tuple[tuple[int, ...], bool]:
    """Which changes it is about in the end, and whether they come back: to undo an undo is to redo."""
    brings_back = False
    while all(entry.body.undoes for entry in entries):
        numbers = [number for entry in entries for number in entry.body.undoes]
        entries = [entry for entry in map(history.log.entry, numbers) if entry is not None]
        brings_back = not brings_back
    return tuple(entry.number for entry in entries), brings_back


def _merging_way(path: bytes, found: PathState, rest: ReversedFile) -> UndoStep:
    new = Content.from_bytes(rest.data)
    mode = found.state.mode if found.state else None
    return UndoStep(
        Step(path, found.state, State(kind="file", hash=new.hash, size=new.size, mode=mode)), found, rest.data
    )


def _undoable(history: History, number: int) -> LoggedChangeSet:
    entry = history.log.entry(number)
    if entry is None or not entry.in_effect:
        raise ToolError("CONFLICT", f"Change {number} was undone meanwhile. Nothing was done.")
    if not entry.body.undoable and not entry.body.steps:
        raise ToolError("NOT_FOUND", f"What was there before change {number} was not kept; it cannot be undone.")
    if not entry.body.undoable:
        raise ToolError("NOT_FOUND", f"Change {number} is older than changes are kept for; it cannot be undone.")
    return entry


def _chains(entries: list[LoggedChangeSet]) -> dict[bytes, list[Step]]:
    """The steps of each path, the latest first."""
    chains: dict[bytes, list[Step]] = {}
    for entry in entries:
        for step in entry.body.steps:
            chains.setdefault(step.path, []).append(step)
    return chains


def _net(path: bytes, chain: list[Step]) -> Step | None:
    """The way back over all steps of a path; None when something else changed the file in between."""
    for later, earlier in pairwise(chain):
        if not has_same_content(later.before, earlier.after):
            return None
    return Step(path, chain[0].after, chain[-1].before)


def _end(step: Step, now: State | None, chain: list[Step]) -> State | None:
    """What is to be there in the end: with the permissions of now, where the changes did not touch them."""
    if step.after is None or now is None or any(_changes_mode(each) for each in chain):
        return step.after if is_mode_change(step) else _without_lent_rights(step.after)
    return msgspec.structs.replace(step.after, mode=now.mode)


def _without_lent_rights(state: State | None) -> State | None:
    """A file that is made anew is ours, whoever had it: it must not lend our rights to who runs it."""
    if state is None or state.kind != "file" or state.mode is None:
        return state
    return msgspec.structs.replace(state, mode=state.mode & ~(stat.S_ISUID | stat.S_ISGID))


def _changes_mode(step: Step) -> bool:
    before, after = step.before, step.after
    return before is None or after is None or before.mode != after.mode
