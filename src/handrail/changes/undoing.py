"""Plans an undo: the way of every file back to what it was before the chosen change sets, and what stands in it."""

import os
from itertools import pairwise

import msgspec

from handrail.changes.carrying import KEPT_WHOLE
from handrail.changes.history import History
from handrail.changes.ways import agrees
from handrail.edit.taking_back import take_back
from handrail.protocol.change import State
from handrail.protocol.error import ToolError
from handrail.store.change_log import Entry, Step
from handrail.workspace.content import content_of
from handrail.workspace.current import Current
from handrail.workspace.errors import tool_error
from handrail.workspace.exact import Found, found_at, reach, shown_path
from handrail.workspace.text import decoded, encoded
from handrail.workspace.workspace import Workspace


class Conflict(msgspec.Struct, frozen=True):
    """A file that is no longer what the change made of it."""

    path: bytes
    shown: str
    changed_by: tuple[int, ...]
    """Later change sets; none when something else than handrail changed it."""


class Way(msgspec.Struct, frozen=True):
    """A file's way back, and what it is now."""

    step: Step
    found: Found


class Plan(msgspec.Struct, frozen=True):
    """An undo that can be carried out, where there is no conflict."""

    entries: tuple[Entry, ...]
    """What is taken back, the latest first."""
    ways: tuple[Way, ...]
    conflicts: tuple[Conflict, ...]
    left: int = 0
    """Places that are no longer as they were, and stay."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """What is taken back, by its numbers."""
        return tuple(entry.number for entry in self.entries)


def plan_undo(workspace: Workspace, history: History, numbers: tuple[int, ...], *, lines: bool = False) -> Plan:
    """The way back over change sets. With `lines`, files that were changed since lose only what is as it was."""
    entries = [_undoable(history, number) for number in sorted(numbers, reverse=True)]
    ways: list[Way] = []
    conflicts: list[Conflict] = []
    left = 0
    for path, chain in _chains(entries).items():
        found = _found(workspace, path)
        step = _net(path, chain)
        if step is not None and agrees(found.state, step):
            if step.before != step.after:
                ways.append(Way(step, found))
            continue
        merged = _merged(history, entries, path, found) if lines else None
        if merged is None:
            conflicts.append(_conflict(workspace, history, path, entries))
        else:
            ways += merged[0]
            left += merged[1]
    return Plan(tuple(entries), tuple(ways), tuple(conflicts), left)


def _undoable(history: History, number: int) -> Entry:
    entry = history.log.entry(number)
    if entry is None or not entry.in_effect:
        raise ToolError("CONFLICT", f"Change {number} was undone meanwhile. Nothing was done.")
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
        if _essence(later.before) != _essence(earlier.after):
            return None
    start, end = chain[0].after, chain[-1].before
    if start is not None and end is not None and not any(_changes_mode(step) for step in chain):
        end = msgspec.structs.replace(end, mode=start.mode)  # what others did to its permissions stays
    return Step(path, start, end)


def _essence(state: State | None) -> tuple[str, str] | None:
    return None if state is None else (state.kind, state.hash)


def _changes_mode(step: Step) -> bool:
    before, after = step.before, step.after
    return before is None or after is None or before.mode != after.mode


def _found(workspace: Workspace, path: bytes) -> Found:
    try:
        with reach(workspace, path) as landing:
            return found_at(landing, KEPT_WHOLE)
    except OSError as error:
        raise tool_error(error, os.fsdecode(path)) from None
    except ToolError as error:
        if error.code != "CONFLICT":
            raise
        return Found(State(kind="link", hash="elsewhere"))  # a state that nothing agrees with


def _conflict(workspace: Workspace, history: History, path: bytes, entries: list[Entry]) -> Conflict:
    own = {entry.number for entry in entries}
    later = history.log.touching(path, min(own))
    by = tuple(entry.number for entry in later if entry.number not in own and entry.in_effect and not entry.body.undoes)
    return Conflict(path, shown_path(workspace, path), by)


def _merged(history: History, entries: list[Entry], path: bytes, found: Found) -> tuple[list[Way], int] | None:
    """The file as it is now, without what the changes put there and is still as they left it; and how much stays."""
    now = found.current
    text = decoded(now.data) if now is not None and now.data is not None else None
    if now is None or text is None or text.damaged or text.line_ending == "mixed":
        return None
    result, left = text.text, 0
    for entry in entries:
        for diff in _diffs(history, entry, path):
            taken = take_back(diff, result)
            if taken is None:
                return None
            result, left = taken.text, left + taken.left
    return _new_text(history, path, found, now, encoded(result, text.encoding, text.line_ending)), left


def _new_text(history: History, path: bytes, found: Found, now: Current, data: bytes) -> list[Way]:
    new = content_of(data)
    if new.hash == now.hash or found.state is None:
        return []
    history.blobs.keep(new.hash, data, pack=True)
    after = msgspec.structs.replace(found.state, hash=new.hash, size=new.size)
    return [Way(Step(path, found.state, after), found)]


def _diffs(history: History, entry: Entry, path: bytes) -> list[str]:
    diffs = history.log.diffs(entry.number) or ("",) * len(entry.body.steps)
    return [diff for step, diff in zip(entry.body.steps, diffs, strict=False) if step.path == path]
