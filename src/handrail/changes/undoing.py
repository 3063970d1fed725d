"""Plans an undo: the way of every file back to what it was before the chosen change sets, and what stands in it."""

import stat
from itertools import pairwise

import msgspec

from handrail.changes.carrying import KEPT_WHOLE
from handrail.changes.conflicts import Conflict, Since
from handrail.changes.former import former
from handrail.changes.history import History
from handrail.changes.looking import SMALL, Looks, light, look_at
from handrail.changes.manners import PLAIN, Bringing
from handrail.changes.merging import Merged, merged
from handrail.changes.opened import closed_folders
from handrail.changes.ways import agrees, only_mode, same
from handrail.protocol.change import State
from handrail.protocol.error import ToolError
from handrail.store.change_log import Entry, Step, Was
from handrail.workspace.content import content_of
from handrail.workspace.exact import Found, shown_path
from handrail.workspace.workspace import Workspace

_HELD = 32 * 1024 * 1024
"""Bytes of files that are held in memory between looking and keeping."""

_COMPARED = 50
"""Files that stand in the way and are compared, to see whether lines of them could be taken back. With more of them
that is not offered; who asks for it gets it."""


class Way(msgspec.Struct, frozen=True):
    """A file's way back, and what it is now."""

    step: Step
    found: Found
    data: bytes | None = None
    """What it leads to, where that was never there before."""


class Plan(msgspec.Struct, frozen=True):
    """An undo that can be carried out, where there is no conflict."""

    entries: tuple[Entry, ...]
    """What is taken back, the latest first."""
    ways: tuple[Way, ...]
    conflicts: tuple[Conflict, ...]
    left: int = 0
    """Places that are no longer as they were, and stay."""

    changes: tuple[int, ...] = ()
    """The changes that are taken back or, where undos are taken back, brought back."""
    brings_back: bool = False
    manners: dict[bytes, Bringing] = {}
    """How the files are brought back that were more than their states say."""
    was: tuple[Was, ...] = ()
    """What files are now besides their states."""
    opened: tuple[tuple[bytes, int], ...] = ()
    """Folders that have to be opened for it, with their modes."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """What is taken back, by its numbers."""
        return tuple(entry.number for entry in self.entries)


def plan_undo(workspace: Workspace, history: History, numbers: tuple[int, ...], *, lines: bool = False) -> Plan:
    """The way back over change sets. With `lines`, files that were changed since lose only what is as it was."""
    entries = [_undoable(history, number) for number in sorted(numbers, reverse=True)]
    ways: list[Way] = []
    conflicts: list[Conflict] = []
    left = held = 0
    looks, since = Looks(workspace), Since(history, entries)
    for path, chain in sorted(_chains(entries).items()):
        found = looks.at(path, keep=SMALL if held < _HELD else 0)
        held += len(found.current.data or b"") if found.current is not None else 0
        step = _net(path, chain)
        if step is not None and agrees(found.state, step):
            looks.note(path, found.state)
            if step.before != step.after:
                ways.append(Way(Step(path, found.state, _end(step, found.state, chain)), found))
            continue
        rest = None
        if lines or len(conflicts) < _COMPARED:
            rest = merged(history, entries, path, look_at(workspace, path, keep=KEPT_WHOLE))
        if lines and rest is not None:
            ways.append(_merging_way(path, found, rest))
            left += rest.left
        else:
            shown = shown_path(workspace, path)
            conflicts.append(since.conflict(path, light(found), shown=shown, lines=rest is not None))
    changes, brings_back = _meant(history, entries)
    manners = _manners(entries)
    return Plan(
        tuple(entries),
        tuple(ways),
        tuple(conflicts),
        left,
        changes,
        brings_back,
        manners,
        _former(workspace, ways, manners),
        _to_open(workspace, entries, ways),
    )


def _manners(entries: list[Entry]) -> dict[bytes, Bringing]:
    """The names and attributes that files had before the changes; where a path has several, before the first."""
    manners = {path: Bringing(in_place=False) for entry in entries for path in entry.body.apart}
    for was in (was for entry in entries for was in entry.body.was):
        apart = was.linked_to is not None or was.path in manners
        manners[was.path] = Bringing(
            in_place=False if apart else None, linked_to=was.linked_to, or_apart=True, attributes=was.attributes
        )
    return manners


def _former(workspace: Workspace, ways: list[Way], manners: dict[bytes, Bringing]) -> tuple[Was, ...]:
    """What the files are that make room for others. What is written through stays itself, and so do its names."""

    def stays(way: Way) -> bool:
        now, becomes = way.found.current, way.step.after
        through = now is not None and now.status.st_nlink > 1 and becomes is not None and becomes.kind == "file"
        return only_mode(way.step) or (through and manners.get(way.step.path, PLAIN).in_place is None)

    return former(workspace, {way.step.path: way.found for way in ways if not stays(way)})


def _to_open(workspace: Workspace, entries: list[Entry], ways: list[Way]) -> tuple[tuple[bytes, int], ...]:
    """The closed folders that the way back leads through: those that the changes opened, made or closed themselves.
    One that a person closed since stays closed."""
    own = {path for entry in entries for path, _ in entry.body.opened}
    own |= {step.path for entry in entries for step in entry.body.steps if step.kind == "folder"}
    closed = closed_folders(workspace, [way.step for way in ways]) if own else {}
    return tuple((path, mode) for path, mode in closed.items() if path in own)


def _meant(history: History, entries: list[Entry]) -> tuple[tuple[int, ...], bool]:
    """Which changes it is about in the end, and whether they come back: to undo an undo is to redo."""
    brings_back = False
    while all(entry.body.undoes for entry in entries):
        numbers = [number for entry in entries for number in entry.body.undoes]
        entries = [entry for entry in map(history.log.entry, numbers) if entry is not None]
        brings_back = not brings_back
    return tuple(entry.number for entry in entries), brings_back


def _merging_way(path: bytes, found: Found, rest: Merged) -> Way:
    new = content_of(rest.data)
    mode = found.state.mode if found.state else None
    return Way(Step(path, found.state, State(kind="file", hash=new.hash, size=new.size, mode=mode)), found, rest.data)


def _undoable(history: History, number: int) -> Entry:
    entry = history.log.entry(number)
    if entry is None or not entry.in_effect:
        raise ToolError("CONFLICT", f"Change {number} was undone meanwhile. Nothing was done.")
    if not entry.body.undoable and not entry.body.steps:
        raise ToolError("NOT_FOUND", f"What was there before change {number} was not kept; it cannot be undone.")
    if not entry.body.undoable:
        raise ToolError("NOT_FOUND", f"Change {number} is older than changes are kept for; it cannot be undone.")
    return entry


def _chains(entries: list[Entry]) -> dict[bytes, list[Step]]:
    """The steps of each path, the latest first."""
    chains: dict[bytes, list[Step]] = {}
    for entry in entries:
        for step in entry.body.steps:
            chains.setdefault(step.path, []).append(step)
    return chains


def _net(path: bytes, chain: list[Step]) -> Step | None:
    """The way back over all steps of a path; None when something else changed the file in between."""
    for later, earlier in pairwise(chain):
        if not same(later.before, earlier.after):
            return None
    return Step(path, chain[0].after, chain[-1].before)


def _end(step: Step, now: State | None, chain: list[Step]) -> State | None:
    """What is to be there in the end: with the permissions of now, where the changes did not touch them."""
    if step.after is None or now is None or any(_changes_mode(each) for each in chain):
        return step.after if only_mode(step) else _without_lent_rights(step.after)
    return msgspec.structs.replace(step.after, mode=now.mode)


def _without_lent_rights(state: State | None) -> State | None:
    """A file that is made anew is ours, whoever had it: it must not lend our rights to who runs it."""
    if state is None or state.kind != "file" or state.mode is None:
        return state
    return msgspec.structs.replace(state, mode=state.mode & ~(stat.S_ISUID | stat.S_ISGID))


def _changes_mode(step: Step) -> bool:
    before, after = step.before, step.after
    return before is None or after is None or before.mode != after.mode
