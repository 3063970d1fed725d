"""Changes of a workspace as a person handles them: undo, redo, diff, the origin of a line."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

import msgspec

from handrail.changes.blame import split_text_lines, trace_line
from handrail.changes.recovery import is_within, recover_change_set
from handrail.edit.diff import is_truncated_diff
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeRecord, LineOrigin, StoredDiff
from handrail.protocol.decisions import Decision, Facts, PathFact
from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.results import ToolResult
from handrail.runtime.decide import check_arguments
from handrail.runtime.execute import close_interrupted, execute_call, take_steps
from handrail.runtime.pending_call import PendingCall
from handrail.runtime.results import BY_PERSON, require_result
from handrail.runtime.session import Session
from handrail.store.change_log import ChangeLog, LoggedChangeSet
from handrail.store.runner import is_dead
from handrail.tools.undo import UndoArguments, UndoData, build_undo_tool, preview_undo

# Selection of change sets

Within = Callable[[LoggedChangeSet], bool]
"""Whether this session can reach the files of a change set. Folders of another session are out of reach."""

_NO_CHANGES = "Session {} has no change in effect. `handrail log --changes` lists the changes of all sessions."


def _select_last_change(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """The last change of the workspace that is in effect, of any session."""
    return (_find_last_change(log, within).number,)


def _load_change_set(log: ChangeLog, number: int) -> LoggedChangeSet:
    entry = log.entry(number)
    if entry is None or entry.state != "done":
        raise ToolError("NOT_FOUND", f"There is no change {number}. `handrail log --changes` lists them.")
    return entry


def _select_changes(log: ChangeLog, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Change sets that are not undone yet."""
    for entry in (_load_change_set(log, number) for number in numbers):
        if entry.undone_by is not None:
            raise ToolError("NO_CHANGE", f"Change {entry.number} was already undone by {entry.undone_by}.")
    return numbers


def _select_last_turn(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """Every change of the last turn that is in effect, the latest first."""
    last = _find_last_change(log, within)
    changes = _list_changes(log, within)
    return tuple(one.number for one in changes if (one.session, one.turn) == (last.session, last.turn))


def _select_session(log: ChangeLog, session: str, within: Within) -> tuple[int, ...]:
    found = tuple(entry.number for entry in _list_changes(log, within) if entry.session == session)
    if not found:
        raise ToolError("NO_CHANGE", _NO_CHANGES.format(session))
    return found


def select_last_undo(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """The last undo that is in effect. Undoing it is a redo."""
    for entry in log.latest():
        undone = [log.entry(number) for number in entry.body.undoes] if entry.in_effect else []
        if undone and all(one is not None and not one.body.undoes for one in undone) and within(entry):
            return (entry.number,)
    raise _build_empty_error("redo")


def select_with_later(log: ChangeLog, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The sets, every later set that touched one of their files, and so on. The latest comes first."""
    chosen = {number: entry for number in numbers if (entry := log.entry(number)) is not None}
    since: dict[bytes, int] = {}
    """For each path: its later sets from this number on are chosen."""
    seen = set(chosen)
    waiting = sorted(chosen.values(), key=lambda entry: entry.number, reverse=True)
    while waiting:
        entry = waiting.pop()
        for step in entry.body.steps:
            # A later entry of a folder is no change of the folder.
            if step.kind == "folder" or since.get(step.path, entry.number + 1) <= entry.number:
                continue
            since[step.path] = entry.number
            new = [one for one in log.list_numbers(step.path, entry.number) if one not in seen]
            seen.update(new)
            later = [one for one in map(log.entry, new) if one is not None and _is_change(one)]
            chosen |= {one.number: one for one in later}
            waiting += later
    return tuple(sorted(chosen, reverse=True))


def _list_changes(log: ChangeLog, within: Within) -> Iterator[LoggedChangeSet]:
    return (entry for entry in log.latest() if _is_change(entry) and within(entry))


def _find_last_change(log: ChangeLog, within: Within) -> LoggedChangeSet:
    for entry in _list_changes(log, within):
        return entry
    raise _build_empty_error("undo")


def _is_change(entry: LoggedChangeSet) -> bool:
    return entry.in_effect and not entry.body.undoes


def _build_empty_error(doing: str) -> ToolError:
    return ToolError("NO_CHANGE", f"There is nothing to {doing} in this workspace.")


Resolve = Literal["later", "lines"]
"""How to undo a file that was changed later: with the later changes, or only the lines that are unchanged."""
Choose = Callable[[ChangeLog, Within], tuple[int, ...]]
_MAX_FILE_BYTES = 8 * 1024 * 1024
_ALLOWED = Decision(decision="allow", rule=BY_PERSON, reason="the user asked for it")


def select_change_sets(number: int | tuple[int, ...] | None, turn: bool, session: str | None) -> Choose:
    if (number is not None) + turn + (session is not None) > 1:
        raise UsageError("undo takes one of: a number, turn=True, a session")
    if number is not None:
        numbers = (number,) if isinstance(number, int) else number
        return lambda log, _: _select_changes(log, numbers)
    if session is not None:
        return lambda log, within: _select_session(log, session, within)
    return _select_last_turn if turn else _select_last_change


def undo(session: Session, choose: Choose, resolve: Resolve | None) -> ToolResult[UndoData]:
    """Undoes change sets. The call is recorded like every other, but no model can make it."""
    call_id = session.journal.new_call_id()
    args = {"numbers": (), "lines": resolve == "lines"}
    call = ToolCall(tool_call_id=call_id, name="undo", args=args, trace_id=call_id, timestamp=datetime.now(UTC))
    pending = PendingCall(call, session.characters)
    pending.id_is_ours, pending.decision = True, _ALLOWED
    pending.tool = build_undo_tool(session.workspace, session.recorder)

    def choose_sets(session: Session, pending: PendingCall) -> None:
        numbers = _select_numbers(session, choose, resolve)
        pending.call = msgspec.structs.replace(call, args={**args, "numbers": numbers})
        pending.args = {**args, "numbers": list(numbers)}

    try:
        take_steps(session, pending, (choose_sets, check_arguments, _collect_facts))
        execute_call(session, pending)
    except BaseException as error:
        if not isinstance(error, Exception):
            close_interrupted(session, pending)
        raise
    return require_result(pending)


def preview(session: Session, choose: Choose, resolve: Resolve | None) -> str:
    """The diff of an undo. ToolError if the undo would be refused."""
    arguments = UndoArguments(numbers=_select_numbers(session, choose, resolve), lines=resolve == "lines")
    return preview_undo(session.workspace, session.recorder, arguments)


def list_last_changes(session: Session, limit: int) -> list[ChangeRecord]:
    settle_dead_changes(session)
    history = session.recorder.history
    if history.is_empty:
        return []
    finished = (entry for entry in history.log.latest() if entry.state == "done")
    return [entry.to_record() for entry in islice(finished, limit)]


def list_turn_changes(session: Session, turns: Collection[str]) -> tuple[int, ...]:
    settle_dead_changes(session)
    if session.recorder.history.is_empty:
        return ()
    changes = _list_changes(session.recorder.history.log, _build_filter(session))
    return tuple(one.number for one in changes if one.turn in turns)


def read_diff(session: Session, number: int | None) -> StoredDiff:
    """The diff of a change set. None stands for the last one in effect."""
    settle_dead_changes(session)
    log = session.recorder.history.log
    selected = _find_last_in_effect(session) if number is None else _load_change_set(log, number).number
    diffs = log.diffs(selected)
    if diffs is None:
        raise ToolError("NOT_FOUND", f"Change {selected} is too old. Its diff is no longer stored.")
    text = "".join(diffs)
    return StoredDiff((selected,), text, is_truncated_diff(text))


def read_turn_diff(session: Session) -> StoredDiff:
    """The diffs of the last turn's change sets that are in effect."""
    settle_dead_changes(session)
    _find_last_in_effect(session)
    numbers = _select_last_turn(session.recorder.history.log, _build_filter(session))[::-1]
    diffs = [read_diff(session, number) for number in numbers]
    return StoredDiff(numbers, "".join(one.text for one in diffs), any(one.truncated for one in diffs))


def find_line_origin(session: Session, path: str, line: int) -> tuple[str, str, LineOrigin]:
    """The path as results show it, the present line, and its origin."""
    if line < 1:
        raise UsageError(f"lines are counted from 1, got {line}")
    settle_dead_changes(session)
    with session.workspace.open_file(path) as opened:
        real, data = opened.real, _read_file(opened.descriptor, path)
    lines = split_text_lines(data)
    if lines is None:
        raise ToolError(
            "BINARY_FILE", f"{path} is not text, so it has no lines. handrail log --changes lists its changes."
        )
    if line > len(lines):
        count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
        raise ToolError("NOT_FOUND", f"{path} has {count}, so there is no line {line}.")
    history = session.recorder.history
    if history.is_empty:
        return real, lines[line - 1], LineOrigin(kind="before", path=os.fsencode(real), line=line)
    origin = trace_line(history.log, session.recorder.content, os.fsencode(real), data, line)
    return real, lines[line - 1], origin


def settle_dead_changes(session: Session) -> None:
    """Settles change sets that killed processes began in this workspace. Those that cannot be settled are left."""
    history = session.recorder.history
    if history.is_empty:
        return
    for entry in history.log.list_begun():
        folder = os.path.join(os.path.dirname(session.folder), entry.session)
        if is_dead(folder, entry.runner) and is_within(session.workspace, entry):
            with contextlib.suppress(ToolError, StoreError, OSError):
                recover_change_set(session.workspace, history, entry.number)


def _select_numbers(session: Session, choose: Choose, resolve: Resolve | None) -> tuple[int, ...]:
    settle_dead_changes(session)
    log = session.recorder.history.log
    numbers = choose(log, _build_filter(session))
    return select_with_later(log, numbers) if resolve == "later" else numbers


def _find_last_in_effect(session: Session) -> int:
    try:
        return _select_last_change(session.recorder.history.log, _build_filter(session))[0]
    except ToolError:
        raise ToolError("NO_CHANGE", "No change is in effect in this workspace.") from None


def _build_filter(session: Session) -> Within:
    """Excludes the changes of other sessions in their own folders."""
    home, own = os.fsencode(os.path.dirname(session.folder)) + b"/", os.fsencode(session.folder) + b"/"

    def is_visible(entry: LoggedChangeSet) -> bool:
        return all(not step.path.startswith(home) or step.path.startswith(own) for step in entry.body.steps)

    return is_visible


def _collect_facts(_: Session, pending: PendingCall) -> None:
    """The files by the names that undo uses. Undo itself checks their present state."""
    paths = pending.tool.touches(pending.arguments).writes
    pending.facts = Facts(paths=tuple(PathFact(path=path, access="write", kind="file", real=path) for path in paths))


def _read_file(descriptor: int, path: str) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise ToolError("LIMIT_EXCEEDED", f"{path} is larger than 8 MiB, so handrail does not track its lines.")
    return data
