"""Plans an undo: change sets, conflicts, merges."""

import stat
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import msgspec

from handrail.changes.apply import MAX_IN_MEMORY_BYTES
from handrail.changes.history import History
from handrail.changes.model import PLAIN_PLACEMENT, Placement, has_same_content, is_before_state, is_mode_change
from handrail.changes.path_state import MAX_PACKED_BYTES, PathProbe, probe_path, strip_data
from handrail.changes.staging import capture_extras, list_locked_dirs
from handrail.edit.diff import reverse_hunks
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.store.change_log import ChangeLog, FileExtras, LoggedChangeSet, Step
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import Content, PathState
from handrail.workspace.text import decode_text, encode_text
from handrail.workspace.workspace import Workspace

# § [changes.conflicts] Why a change cannot simply be undone, in words that help.

_MAX_TOLD_CONFLICTS = 5


class Conflict(msgspec.Struct, frozen=True):
    """A file that is no longer what the change made of it."""

    path: str
    """As results name it."""
    changed_by: tuple[int, ...]
    """Later change sets; none when something else than handrail changed it."""
    undos: tuple[int, ...]
    """Those of them that are undos, which are not undone along with others."""
    lines: bool
    """Whether something in it is as it was left."""


class LaterChanges:
    """The change sets that came after those that are to be undone."""

    def __init__(self, history: History, entries: list[LoggedChangeSet]) -> None:
        self._log = history.log
        self._own = {entry.number for entry in entries}
        self._entries: dict[int, LoggedChangeSet | None] = {}
        self._left: dict[int, dict[bytes, State | None]] = {}

    def conflict(self, path: bytes, found: PathState, *, shown: str, lines: bool) -> Conflict:
        """Who changed a file since: others, unless it is as a later change set left it."""
        numbers = [one for one in self._log.numbers_touching(path, min(self._own)) if one not in self._own]
        later = [entry for number in numbers if (entry := self._entry(number)) is not None]
        if not later or not has_same_content(self._after(later[-1]).get(path), found.state):
            return Conflict(shown, (), (), lines)
        changes = tuple(entry.number for entry in later if entry.in_effect and not entry.body.undoes)
        undos = () if changes else (later[-1].number,)
        return Conflict(shown, changes or undos, undos, lines)

    def _entry(self, number: int) -> LoggedChangeSet | None:
        if number not in self._entries:
            self._entries[number] = self._log.entry(number)
        return self._entries[number]

    def _after(self, entry: LoggedChangeSet) -> dict[bytes, State | None]:
        """What a set left at each of its paths."""
        if entry.number not in self._left:
            self._left[entry.number] = {step.path: step.after for step in entry.body.steps}
        return self._left[entry.number]


def build_undo_error(numbers: tuple[int, ...], conflicts: tuple[Conflict, ...]) -> ToolError:
    """What a person is told: which file, by whom, and what can be done instead."""
    told = " ".join(_told(conflict) for conflict in conflicts[:_MAX_TOLD_CONFLICTS])
    more = (
        f" {len(conflicts) - _MAX_TOLD_CONFLICTS} more files likewise." if len(conflicts) > _MAX_TOLD_CONFLICTS else ""
    )
    choices: list[str] = []
    if all(conflict.changed_by and not conflict.undos for conflict in conflicts):
        choices.append("later")
    if all(conflict.lines for conflict in conflicts):
        choices.append("lines")
    message = f"Undo {format_numbers(numbers)}: {told}{more} Nothing was undone.{_ways(choices, numbers)}"
    details = [{"path": conflict.path, "changedBy": list(conflict.changed_by)} for conflict in conflicts]
    return ToolError("CONFLICT", message, details={"conflicts": details, "choices": choices})


def format_numbers(numbers: tuple[int, ...]) -> str:
    """1, 2 and 3."""
    return " and ".join(filter(None, (", ".join(map(str, numbers[:-1])), str(numbers[-1]))))


_WAYS = {
    "later": "undo the later changes too (--with-later)",
    "lines": "undo only the lines that are as they were left (--lines)",
}


def _ways(choices: list[str], numbers: tuple[int, ...]) -> str:
    if not choices:
        return f" handrail diff {numbers[-1]} shows what it did, for what you want to take back by hand."
    return f" You can {', or '.join(_WAYS[choice] for choice in choices)}."


def _told(conflict: Conflict) -> str:
    path = clip_path(conflict.path)
    if conflict.undos:
        return f"{path} was changed again by {format_numbers(conflict.undos)}, an undo."
    if conflict.changed_by:
        return f"{path} was changed again by {format_numbers(conflict.changed_by)}."
    return f"{path} was changed since, not by handrail."


# § [changes.merging] Undoes only what is as it was left, in a file that was changed since.


class ReversedFile(NamedTuple):
    """The file without what was found as it was left."""

    data: bytes
    left: int
    """Places that are no longer as they were left, and stay."""


def reverse_file_changes(
    history: History, entries: list[LoggedChangeSet], path: bytes, found: PathState
) -> ReversedFile | None:
    """A text file as it is now, without what the changes put there and is still so; None where nothing is."""
    now = found.current
    text = decode_text(now.data) if now is not None and now.data is not None else None
    if now is None or text is None or encode_text(text.text, text.encoding, text.line_ending) != now.data:
        return None  # not every byte of it would come through
    result, done, left = text.text, 0, 0
    for entry in entries:
        for diff, before in _diffs(history, entry, path):
            taken = reverse_hunks(diff, before, result) if before is not None else None
            if taken is None:
                return None
            result, done, left = taken.text, done + taken.done, left + taken.left
    return ReversedFile(encode_text(result, text.encoding, text.line_ending), left) if done else None


def _diffs(history: History, entry: LoggedChangeSet, path: bytes) -> list[tuple[str, str | None]]:
    """What the change did to a path, each time with the text of before."""
    diffs = history.log.diffs(entry.number) or ("",) * len(entry.body.steps)
    steps = zip(entry.body.steps, diffs, strict=False)
    return [(diff, _text_of(history, step.before)) for step, diff in steps if step.path == path]


def _text_of(history: History, state: State | None) -> str | None:
    if state is None:
        return ""
    if state.kind != "file" or state.size > MAX_IN_MEMORY_BYTES:
        return None
    try:
        text = decode_text(b"".join(history.blobs.chunks(state.hash)))
    except (OSError, StoreError):
        return None
    return text.text if text is not None else None


# § [changes.undoing] Plans an undo: the way of every file back to what it was before the chosen change sets, and
# § what stands in it.

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


# § [changes.choosing] Which change sets an undo or a redo is about.

Within = Callable[[LoggedChangeSet], bool]
"""Whether the files of a change set are in reach: those in another session's own folder are not."""

_NOTHING_OF_IT = "Session {} has changed nothing that is in effect. `handrail log --changes` says which sessions have."


def select_last_change(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """The last change of the workspace that is in effect, whoever made it."""
    for entry in log.latest():
        if _counts(entry) and within(entry):
            return (entry.number,)
    raise _nothing("undo")


def load_change_set(log: ChangeLog, number: int) -> LoggedChangeSet:
    """The change set of a number."""
    entry = log.entry(number)
    if entry is None or entry.state != "done":
        raise ToolError("NOT_FOUND", f"There is no change {number}. `handrail log --changes` lists them.")
    return entry


def select_change(log: ChangeLog, number: int) -> tuple[int, ...]:
    """A change set that can be undone, by its number."""
    entry = load_change_set(log, number)
    if entry.undone_by is not None:
        raise ToolError("NO_CHANGE", f"Change {number} is undone already, by {entry.undone_by}.")
    return (number,)


def select_last_turn(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """Every change of the turn that the last change belongs to, the latest first."""
    last = log.entry(select_last_change(log, within)[0])
    of_turn = [
        entry.number
        for entry in log.latest()
        if last is not None
        and (entry.session, entry.turn) == (last.session, last.turn)
        and _counts(entry)
        and within(entry)
    ]
    return tuple(of_turn)


def select_session(log: ChangeLog, session: str, within: Within) -> tuple[int, ...]:
    """Every change of a session that is in effect, the latest first."""
    mine = (entry for entry in log.latest() if entry.session == session)
    found = tuple(entry.number for entry in mine if _counts(entry) and within(entry))
    if not found:
        raise ToolError("NO_CHANGE", _NOTHING_OF_IT.format(session))
    return found


def select_last_undo(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """The last undo that is in effect: undoing it is a redo."""
    for entry in log.latest():
        is_undo = entry.in_effect and entry.body.undoes and all(_is_plain(log, one) for one in entry.body.undoes)
        if is_undo and within(entry):
            return (entry.number,)
    raise _nothing("redo")


def select_with_later(log: ChangeLog, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The same sets and every later one that touched a file of theirs, and so on; the latest first."""
    chosen = {number: entry for number in numbers if (entry := log.entry(number)) is not None}
    since: dict[bytes, int] = {}
    """From which set on the later ones of a path are among the chosen."""
    seen = set(chosen)
    waiting = sorted(chosen.values(), key=lambda entry: entry.number, reverse=True)
    while waiting:
        entry = waiting.pop()
        for step in entry.body.steps:
            # What was put into a folder later is no change of the folder.
            if step.kind == "folder" or since.get(step.path, entry.number + 1) <= entry.number:
                continue
            since[step.path] = entry.number
            new = [one for one in log.numbers_touching(step.path, entry.number) if one not in seen]
            seen.update(new)
            later = [one for one in map(log.entry, new) if one is not None and _counts(one)]
            chosen |= {one.number: one for one in later}
            waiting += later
    return tuple(sorted(chosen, reverse=True))


def _counts(entry: LoggedChangeSet) -> bool:
    return entry.in_effect and not entry.body.undoes


def _is_plain(log: ChangeLog, number: int) -> bool:
    entry = log.entry(number)
    return entry is not None and not entry.body.undoes


def _nothing(doing: str) -> ToolError:
    return ToolError("NO_CHANGE", f"There is nothing to {doing} in this workspace.")
