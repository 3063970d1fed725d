"""Undoes change sets."""

import os
import stat
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from handrail.changes.apply import MAX_IN_MEMORY_BYTES
from handrail.changes.history import History
from handrail.changes.model import (
    PLAIN_PLACEMENT,
    ApplyOptions,
    Placement,
    build_change,
    has_same_content,
    is_before_state,
    is_mode_change,
    strip_data,
)
from handrail.changes.recorder import MAX_PACKED_BYTES, RecordedChangeSet, Recorder
from handrail.changes.tree_state import PathProbe, capture_extras, list_locked_dirs, probe_path
from handrail.edit.diff import NO_DIFF, Diff, build_unified_diff
from handrail.edit.diff_parser import reverse_hunks
from handrail.protocol.changes import Change, State
from handrail.protocol.errors import StoreError, ToolError
from handrail.store.change_log import ChangeSetRecord, FileExtras, LoggedChangeSet, Step
from handrail.workspace.atomic import build_temporary_name
from handrail.workspace.file_state import Content, PathState
from handrail.workspace.roots import clip_path
from handrail.workspace.text import decode_text, encode_text
from handrail.workspace.workspace import Workspace

_MAX_HELD_BYTES = 32 * 1024 * 1024
"""Bytes of files that are held in memory until they are stored."""
_MAX_COMPARED_FILES = 50
"""Number of conflicts up to which undoing single lines is tried, to offer it."""
_MAX_NAMED_CONFLICTS = 5
_MAX_DIFFED_FILES, _MAX_DIFFED_BYTES = 200, 4 * 1024 * 1024


class UndoStep(msgspec.Struct, frozen=True):
    step: Step
    now: PathState
    data: bytes | None = None
    """The new content, if it never existed before."""


class UndoPlan(msgspec.Struct, frozen=True, kw_only=True):
    """An undo that nothing conflicts with."""

    entries: tuple[LoggedChangeSet, ...]
    """The change sets to undo, the latest first."""
    steps: tuple[UndoStep, ...]
    left: int
    """Number of changed places that stay."""
    changes: tuple[int, ...]
    """The original changes: an undo of an undo is a redo of these."""
    is_redo: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(entry.number for entry in self.entries)

    @property
    def summary(self) -> str:
        states = [(undo.step.path, undo.step.after or undo.step.before) for undo in self.steps]
        files = [path for path, state in states if state is not None and state.kind != "folder"]
        did = f"{'Redid' if self.is_redo else 'Undid'} {_join_numbers(self.changes)}"
        return f"{did}: {clip_path(os.fsdecode(files[0])) if len(files) == 1 else f'{len(files)} files'}"


def plan_undo(workspace: Workspace, history: History, numbers: tuple[int, ...], *, lines: bool = False) -> UndoPlan:
    """Plans the undo of change sets. CONFLICT if a file changed since.

    With `lines`, such a file loses only the lines that are as the change sets left them.
    """
    entries = [_load_undoable(history, number) for number in sorted(numbers, reverse=True)]
    planner = _Planner(workspace, history, entries, lines=lines)
    for path, chain in sorted(_group_by_path(entries).items()):
        planner.add(path, chain)
    if planner.conflicts:
        raise _build_conflict_error(tuple(entry.number for entry in entries), planner.conflicts)
    changes, is_redo = _find_original_changes(history, entries)
    return UndoPlan(
        entries=tuple(entries), steps=tuple(planner.steps), left=planner.left, changes=changes, is_redo=is_redo
    )


def execute_undo(
    workspace: Workspace, recorder: Recorder, plan: UndoPlan, *, session_id: str, call_id: str
) -> tuple[RecordedChangeSet, str]:
    """Makes an undo, which can be undone itself. Returns its diff too."""
    _keep_contents(recorder, plan)
    changes, diffs = describe_undo(workspace, recorder, plan)
    placements = _collect_placements(plan.entries)
    unlocked = _list_unlocked_dirs(workspace, plan)
    record = ChangeSetRecord(
        "undo",
        plan.summary,
        tuple(undo.step for undo in plan.steps),
        changes,
        plan.numbers,
        unlinked_paths=tuple(path for path, placement in placements.items() if placement.in_place is False),
        was=_capture_extras(workspace, plan.steps, placements),
        opened=tuple(unlocked.items()),
    )
    options = ApplyOptions(
        placements=placements,
        known_states={undo.step.path: strip_data(undo.now) for undo in plan.steps},
        unlocked_dirs=unlocked,
        allow_copies=True,
        use_staging=True,
    )

    def work() -> tuple[Step, ...]:
        taken = {
            step.path for step in recorder.carry_out(build_temporary_name(session_id, call_id), record.steps, options)
        }
        # Folders that were not empty, or existed already, stay.
        return tuple(step if step.path in taken else Step(step.path, step.before, step.before) for step in record.steps)

    return recorder.record(call_id, record, work, diffs), "".join(diffs)


def describe_undo(
    workspace: Workspace, recorder: Recorder, plan: UndoPlan
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """The changes and diffs of an undo. Beyond a limit, files have no diff: there may be thousands."""
    files, size = _MAX_DIFFED_FILES, _MAX_DIFFED_BYTES
    changes: list[Change] = []
    diffs: list[str] = []
    for undo in plan.steps:
        shown, diff = workspace.render_path(undo.step.path), NO_DIFF
        if undo.step.kind != "folder" and files > 0 and size > 0:
            files -= 1
            size -= sum(state.size for state in (undo.step.before, undo.step.after) if state is not None)
            diff = _build_diff(workspace, recorder, undo, shown)
        is_binary = undo.now.current is not None and diff is NO_DIFF
        changes.append(build_change(undo.step, shown, diff, binary=is_binary))
        diffs.append(diff.text)
    return tuple(changes), tuple(diffs)


class _Planner:
    """Plans the undo of one path after the other, parents first."""

    def __init__(self, workspace: Workspace, history: History, entries: list[LoggedChangeSet], *, lines: bool) -> None:
        self.steps: list[UndoStep] = []
        self.conflicts: list[_Conflict] = []
        self.left = 0
        self._workspace = workspace
        self._history = history
        self._entries = entries
        self._lines = lines
        self._probe = PathProbe(workspace)
        self._load = cache(history.log.entry)
        self._results: dict[int, dict[bytes, State | None]] = {}
        self._held = 0

    def add(self, path: bytes, chain: list[Step]) -> None:
        now = self._probe.read(path, keep=MAX_PACKED_BYTES if self._held < _MAX_HELD_BYTES else 0)
        self._held += len(now.current.data or b"") if now.current is not None else 0
        step = _invert_chain(path, chain)
        if step is None or not is_before_state(now.state, step):
            self._add_changed(path, now)
            return
        self._probe.note(path, now.state)
        if step.before != step.after:
            self.steps.append(UndoStep(Step(path, now.state, _find_result(step, now.state, chain)), now))

    def _add_changed(self, path: bytes, now: PathState) -> None:
        """Adds a path that changed since: with its unchanged lines reversed, or as a conflict."""
        reversed_file = None
        if self._lines or len(self.conflicts) < _MAX_COMPARED_FILES:
            present = probe_path(self._workspace, path, keep=MAX_IN_MEMORY_BYTES)
            reversed_file = _reverse_lines(self._history, self._entries, path, present)
        if not self._lines or reversed_file is None:
            self.conflicts.append(self._find_conflict(path, now, has_lines=reversed_file is not None))
            return
        data, left = reversed_file
        new, mode = Content.from_bytes(data), now.state.mode if now.state else None
        after = State(kind="file", hash=new.hash, size=new.size, mode=mode)
        self.steps.append(UndoStep(Step(path, now.state, after), now, data))
        self.left += left

    def _find_conflict(self, path: bytes, now: PathState, *, has_lines: bool) -> "_Conflict":
        """Finds the later change sets of a file. There are none if the file is not as the last of them left it."""
        shown, own = self._workspace.render_path(path), {entry.number for entry in self._entries}
        numbers = [one for one in self._history.log.list_numbers(path, min(own)) if one not in own]
        later = [entry for number in numbers if (entry := self._load(number)) is not None]
        if not later or not has_same_content(self._list_results(later[-1]).get(path), now.state):
            return _Conflict(shown, (), (), has_lines)
        changes = tuple(entry.number for entry in later if entry.in_effect and not entry.body.undoes)
        undos = () if changes else (later[-1].number,)
        return _Conflict(shown, changes or undos, undos, has_lines)

    def _list_results(self, entry: LoggedChangeSet) -> dict[bytes, State | None]:
        if entry.number not in self._results:
            self._results[entry.number] = {step.path: step.after for step in entry.body.steps}
        return self._results[entry.number]


def _load_undoable(history: History, number: int) -> LoggedChangeSet:
    entry = history.log.entry(number)
    if entry is None or not entry.in_effect:
        raise ToolError("CONFLICT", f"Change {number} was undone meanwhile. Nothing was done.")
    if not entry.body.undoable and not entry.body.steps:
        raise ToolError("NOT_FOUND", f"Change {number} cannot be undone: the content before it was not stored.")
    if not entry.body.undoable:
        raise ToolError("NOT_FOUND", f"Change {number} is too old to undo. Its earlier content is no longer stored.")
    return entry


def _group_by_path(entries: Iterable[LoggedChangeSet]) -> dict[bytes, list[Step]]:
    """The steps of each path, the latest first."""
    chains: dict[bytes, list[Step]] = {}
    for entry in entries:
        for step in entry.body.steps:
            chains.setdefault(step.path, []).append(step)
    return chains


def _invert_chain(path: bytes, chain: list[Step]) -> Step | None:
    """The step back over all steps of a path. None if the file changed in between."""
    for later, earlier in pairwise(chain):
        if not has_same_content(later.before, earlier.after):
            return None
    return Step(path, chain[0].after, chain[-1].before)


def _find_result(step: Step, now: State | None, chain: list[Step]) -> State | None:
    """The state after an undo. It has the mode of now, if the changes did not touch the mode."""
    if step.after is None or now is None or any(_changes_mode(each) for each in chain):
        return step.after if is_mode_change(step) else _drop_setid_bits(step.after)
    return replace(step.after, mode=now.mode)


def _drop_setid_bits(state: State | None) -> State | None:
    """The restored file belongs to us, whoever owned it before, so it must not run with our rights."""
    if state is None or state.kind != "file" or state.mode is None:
        return state
    return replace(state, mode=state.mode & ~(stat.S_ISUID | stat.S_ISGID))


def _changes_mode(step: Step) -> bool:
    before, after = step.before, step.after
    return before is None or after is None or before.mode != after.mode


def _find_original_changes(history: History, entries: list[LoggedChangeSet]) -> tuple[tuple[int, ...], bool]:
    """The changes that are undone in the end, and whether they are redone: the undo of an undo is a redo."""
    is_redo = False
    while all(entry.body.undoes for entry in entries):
        numbers = [number for entry in entries for number in entry.body.undoes]
        entries = [entry for entry in map(history.log.entry, numbers) if entry is not None]
        is_redo = not is_redo
    return tuple(entry.number for entry in entries), is_redo


# Executing a plan


def _keep_contents(recorder: Recorder, plan: UndoPlan) -> None:
    """Keeps the contents that an undo removes, and checks that all contents that it restores are kept."""
    needed: dict[str, bytes] = {}
    for undo in plan.steps:
        after, before = undo.step.after, undo.step.before
        if after is not None and undo.data is not None:
            recorder.keep_bytes(after.hash, undo.data)
        if after is None or after.kind == "folder" or (before is not None and before.hash == after.hash):
            continue
        needed.setdefault(after.hash, undo.step.path)
    for missing in recorder.history.blobs.list_missing(needed):
        path = clip_path(os.fsdecode(needed[missing]))
        raise ToolError("NOT_FOUND", f"The earlier content of {path} is no longer stored. Nothing was undone.")
    recorder.keep_all((undo.step.path, undo.now) for undo in plan.steps)


def _collect_placements(entries: Iterable[LoggedChangeSet]) -> dict[bytes, Placement]:
    """The names and attributes of files before the changes. Entries come latest first, so the first change counts."""
    placements = {path: Placement(in_place=False) for entry in entries for path in entry.body.unlinked_paths}
    for extras in (extras for entry in entries for extras in entry.body.was):
        is_separate = extras.linked_to is not None or extras.path in placements
        placements[extras.path] = Placement(
            in_place=False if is_separate else None, linked_to=extras.linked_to, attributes=extras.attributes
        )
    return placements


def _capture_extras(
    workspace: Workspace, steps: Iterable[UndoStep], placements: dict[bytes, Placement]
) -> tuple[FileExtras, ...]:
    """The extras of the files that are replaced. A file that is written through keeps its own."""

    def stays(undo: UndoStep) -> bool:
        now, after = undo.now.current, undo.step.after
        is_shared = now is not None and now.status.st_nlink > 1 and after is not None and after.kind == "file"
        in_place = placements.get(undo.step.path, PLAIN_PLACEMENT).in_place
        return is_mode_change(undo.step) or (is_shared and in_place is None)

    return capture_extras(workspace, {undo.step.path: undo.now for undo in steps if not stays(undo)})


def _list_unlocked_dirs(workspace: Workspace, plan: UndoPlan) -> dict[bytes, int]:
    """The locked folders to unlock: those that the changes unlocked, made or locked. Others stay locked."""
    own = {path for entry in plan.entries for path, _ in entry.body.opened}
    own |= {step.path for entry in plan.entries for step in entry.body.steps if step.kind == "folder"}
    locked = list_locked_dirs(workspace, [undo.step for undo in plan.steps]) if own else {}
    return {path: mode for path, mode in locked.items() if path in own}


def _build_diff(workspace: Workspace, recorder: Recorder, undo: UndoStep, shown: str) -> Diff:
    """The diff of an undone file, if both sides are small texts. Files are read one at a time to save memory."""
    after, now = undo.step.after, undo.now.current
    if now is not None and now.data is None:
        now = probe_path(workspace, undo.step.path, keep=MAX_IN_MEMORY_BYTES).current
    if max(undo.step.before.size if undo.step.before else 0, after.size if after else 0) > MAX_IN_MEMORY_BYTES:
        return NO_DIFF
    old = decode_text(now.data) if now is not None and now.data is not None else None
    if (now is not None and old is None) or (after is not None and after.kind != "file"):
        return NO_DIFF
    content = undo.data
    if content is None and after is not None:
        try:
            content = b"".join(recorder.history.blobs.chunks(after.hash))
        except StoreError as error:
            message = f"{clip_path(shown)} cannot be restored: {error}. Nothing was undone."
            raise ToolError("IO_ERROR", message) from None
    new = decode_text(content) if content is not None else None
    if after is not None and new is None:
        return NO_DIFF
    return build_unified_diff(old.text if old else None, new.text if new else None, shown)


# Reversing lines


def _reverse_lines(
    history: History, entries: list[LoggedChangeSet], path: bytes, present: PathState
) -> tuple[bytes, int] | None:
    """A text file without the lines that are as the changes left them, and the number of changed places that stay.

    None if there are no such lines.
    """
    now = present.current
    text = decode_text(now.data) if now is not None and now.data is not None else None
    if now is None or text is None or encode_text(text.text, text.encoding, text.line_ending) != now.data:
        return None  # decoding would lose bytes
    result, done, left = text.text, 0, 0
    for entry in entries:
        for diff, before in _read_diffs(history, entry, path):
            taken = reverse_hunks(diff, before, result) if before is not None else None
            if taken is None:
                return None
            result, done, left = taken.text, done + taken.done, left + taken.left
    return (encode_text(result, text.encoding, text.line_ending), left) if done else None


def _read_diffs(history: History, entry: LoggedChangeSet, path: bytes) -> list[tuple[str, str | None]]:
    diffs = history.log.diffs(entry.number) or ("",) * len(entry.body.steps)
    steps = zip(entry.body.steps, diffs, strict=False)
    return [(diff, _read_text(history, step.before)) for step, diff in steps if step.path == path]


def _read_text(history: History, state: State | None) -> str | None:
    if state is None:
        return ""
    if state.kind != "file" or state.size > MAX_IN_MEMORY_BYTES:
        return None
    try:
        text = decode_text(b"".join(history.blobs.chunks(state.hash)))
    except (OSError, StoreError):
        return None
    return text.text if text is not None else None


# Conflicts


class _Conflict(msgspec.Struct, frozen=True):
    path: str
    changed_by: tuple[int, ...]
    """Later change sets. Empty if the file was not changed by handrail."""
    undos: tuple[int, ...]
    """The undos among them, which are not undone along with others."""
    lines: bool
    """Whether some of the lines are still as the change left them."""


def _build_conflict_error(numbers: tuple[int, ...], conflicts: list[_Conflict]) -> ToolError:
    described = " ".join(_describe_conflict(conflict) for conflict in conflicts[:_MAX_NAMED_CONFLICTS])
    rest = len(conflicts) - _MAX_NAMED_CONFLICTS
    more = f" {rest} more files likewise." if rest > 0 else ""
    choices: list[str] = []
    if all(conflict.changed_by and not conflict.undos for conflict in conflicts):
        choices.append("later")
    if all(conflict.lines for conflict in conflicts):
        choices.append("lines")
    message = (
        f"Undo {_join_numbers(numbers)}: {described}{more} Nothing was undone.{_describe_choices(choices, numbers)}"
    )
    details = [{"path": conflict.path, "changedBy": list(conflict.changed_by)} for conflict in conflicts]
    return ToolError("CONFLICT", message, details={"conflicts": details, "choices": choices})


def _describe_conflict(conflict: _Conflict) -> str:
    path = clip_path(conflict.path)
    if conflict.undos:
        return f"{path} was changed again by {_join_numbers(conflict.undos)}, an undo."
    if conflict.changed_by:
        return f"{path} was changed again by {_join_numbers(conflict.changed_by)}."
    return f"{path} was changed since, not by handrail."


_CHOICES = {
    "later": "undo the later changes too (--with-later)",
    "lines": "undo only lines that did not change since (--lines)",
}


def _describe_choices(choices: list[str], numbers: tuple[int, ...]) -> str:
    if not choices:
        return f" To revert by hand, see: handrail diff {numbers[-1]}"
    return f" You can {', or '.join(_CHOICES[choice] for choice in choices)}."


def _join_numbers(numbers: tuple[int, ...]) -> str:
    """1, 2 and 3."""
    return " and ".join(filter(None, (", ".join(map(str, numbers[:-1])), str(numbers[-1]))))
