"""Undo, redo and diff."""

import contextlib
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

import msgspec

from handrail.changes.blame import LineOrigin, split_text_lines, trace_line
from handrail.changes.recovery import is_within, recover_change_set
from handrail.changes.selection import (
    Within,
    load_change_set,
    select_change,
    select_last_change,
    select_last_turn,
    select_last_undo,
    select_session,
    select_with_later,
)
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.decisions import Decision, Facts, PathFact
from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.results import ToolResult
from handrail.runtime import decide
from handrail.runtime.execute import close_interrupted, execute_call, take_steps
from handrail.runtime.results import BY_PERSON, require_result
from handrail.runtime.session import PendingCall, Session
from handrail.store.change_log import ChangeLog, LoggedChangeSet
from handrail.store.runner import is_dead
from handrail.tools.undo import UndoArguments, UndoData, build_undo_tool, preview_undo

# § [runtime.person] What a person does to the workspace: undo and redo. On the record like every call, but no model
# § can call it.

__all__ = [
    "list_last_changes",
    "preview",
    "read_diff",
    "read_turn_diff",
    "select_change_sets",
    "select_last_undo",
    "undo",
]
Resolve = Literal["later", "lines"]
"""What to do where a file was changed since: undo the later changes too, or only what is as it was left."""
Choose = Callable[[ChangeLog, Within], tuple[int, ...]]
_ALLOWED = Decision(decision="allow", rule=BY_PERSON, reason="a person asked for it")


def select_change_sets(number: int | tuple[int, ...] | None, turn: bool, session: str | None) -> Choose:
    """Which change sets an undo is about."""
    if (number is not None) + turn + (session is not None) > 1:
        raise UsageError("undo takes a number, turn=True or a session: one of them")
    if number is not None:
        numbers = (number,) if isinstance(number, int) else number
        return lambda log, _: tuple(select_change(log, one)[0] for one in numbers)
    if session is not None:
        return lambda log, within: select_session(log, session, within)
    return select_last_turn if turn else select_last_change


def undo(session: Session, choose: Choose, resolve: Resolve | None) -> ToolResult[UndoData]:
    """Undoes change sets."""
    call_id = session.journal.new_call_id()
    args = {"numbers": (), "lines": resolve == "lines"}
    call = ToolCall(tool_call_id=call_id, name="undo", args=args, trace_id=call_id, timestamp=datetime.now(UTC))
    pending = PendingCall(call, time.perf_counter(), session.characters)
    pending.id_is_ours, pending.tool = True, build_undo_tool(session.workspace, session.recorder)

    def choose_sets(session: Session, pending: PendingCall) -> None:
        numbers = _chosen(session, choose, resolve)
        pending.call = msgspec.structs.replace(call, args={**args, "numbers": numbers})
        pending.args = {**args, "numbers": list(numbers)}

    try:
        take_steps(session, pending, (_allow, choose_sets, decide.check_arguments, _gather_facts))
        execute_call(session, pending)
    except BaseException as error:
        if not isinstance(error, Exception):
            close_interrupted(session, pending)
        raise
    return require_result(pending)


def preview(session: Session, choose: Choose, resolve: Resolve | None) -> str:
    """The differences that an undo would make; ToolError when it would be refused."""
    arguments = UndoArguments(numbers=_chosen(session, choose, resolve), lines=resolve == "lines")
    return preview_undo(session.workspace, session.recorder, arguments)


def list_last_changes(session: Session, limit: int) -> list[ChangeRecord]:
    """The last change sets of the workspace, the latest first."""
    settle_dead_changes(session)
    history = session.recorder.history
    if history.is_empty:
        return []
    return [_record(entry) for entry in islice((one for one in history.log.latest() if one.state == "done"), limit)]


def _record(entry: LoggedChangeSet) -> ChangeRecord:
    body = entry.body
    return ChangeRecord(
        number=entry.number,
        session_id=entry.session,
        tool_call_id=entry.call_id,
        tool=body.tool,
        summary=body.summary,
        time=entry.time,
        in_effect=entry.in_effect,
        undone_by=entry.undone_by,
        undoes=body.undoes,
        undoable=body.undoable,
        changes=body.changes,
        not_covered=body.not_covered,
    )


def read_diff(session: Session, number: int | None) -> tuple[int, str]:
    """The differences that a change set made, and its number: the last one in effect where none is given."""
    settle_dead_changes(session)
    log = session.recorder.history.log
    chosen = _last_in_effect(session) if number is None else load_change_set(log, number).number
    diffs = log.diffs(chosen)
    if diffs is None:
        raise ToolError("NOT_FOUND", f"Change {chosen} is older than changes are kept for.")
    return chosen, "".join(diffs)


def read_turn_diff(session: Session) -> tuple[tuple[int, ...], str]:
    """What the last turn's change sets did that are in effect, one after the other, and their numbers."""
    settle_dead_changes(session)
    _last_in_effect(session)
    numbers = select_last_turn(session.recorder.history.log, _within(session))[::-1]
    return numbers, "".join(read_diff(session, number)[1] for number in numbers)


def _last_in_effect(session: Session) -> int:
    try:
        return select_last_change(session.recorder.history.log, _within(session))[0]
    except ToolError:
        raise ToolError("NO_CHANGE", "No change is in effect in this workspace.") from None


def _within(session: Session) -> Within:
    """All but what another session did in its own folder, which nobody misses in the workspace."""
    home, own = os.fsencode(os.path.dirname(session.folder)) + b"/", os.fsencode(session.folder) + b"/"

    def within(entry: LoggedChangeSet) -> bool:
        return all(not step.path.startswith(home) or step.path.startswith(own) for step in entry.body.steps)

    return within


def settle_dead_changes(session: Session) -> None:
    """Settles what killed processes left begun in this workspace, whatever their session. What cannot be settled is
    left for somebody who can: it does not stand in the way of anything else."""
    history = session.recorder.history
    if history.is_empty:
        return
    for entry in history.log.begun():
        if _is_left(session, entry):
            with contextlib.suppress(ToolError, StoreError, OSError):
                recover_change_set(session.workspace, history, entry.number)


def _is_left(session: Session, entry: LoggedChangeSet) -> bool:
    home = os.path.join(os.path.dirname(session.folder), entry.session)
    return is_dead(home, entry.runner) and is_within(session.workspace, entry)


def _chosen(session: Session, choose: Choose, resolve: Resolve | None) -> tuple[int, ...]:
    settle_dead_changes(session)
    log = session.recorder.history.log
    numbers = choose(log, _within(session))
    return select_with_later(log, numbers) if resolve == "later" else numbers


def _gather_facts(_: Session, pending: PendingCall) -> None:
    """The files as they are spelled, which undo changes under no other name; what they became is its own to judge."""
    paths = pending.tool.touches(pending.arguments).writes
    pending.facts = Facts(paths=tuple(PathFact(path=path, access="write", kind="file", real=path) for path in paths))


def _allow(_: Session, pending: PendingCall) -> None:
    pending.decision = _ALLOWED


# § [runtime.line_history] Where a line of a file comes from, for a person who asks.

_MAX_FILE_BYTES = 8 * 1024 * 1024


def find_line_origin(session: Session, path: str, line: int) -> tuple[str, str, LineOrigin]:
    """The path as results name it, the line as it is now, and where that comes from."""
    if line < 1:
        raise UsageError(f"lines are counted from 1, got {line}")
    settle_dead_changes(session)
    with session.workspace.open_file(path) as opened:
        real, data = opened.real, _read(opened.descriptor, path)
    lines = split_text_lines(data)
    if lines is None:
        raise ToolError(
            "BINARY_FILE", f"{path} is no text, so it has no lines. handrail log --changes lists its changes."
        )
    if line > len(lines):
        count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
        raise ToolError("NOT_FOUND", f"{path} has {count}, so there is no line {line}.")
    history = session.recorder.history
    if history.is_empty:
        return real, lines[line - 1], LineOrigin(kind="before", path=os.fsencode(real), line=line)
    origin = trace_line(history.log, session.recorder.content, os.fsencode(real), data, line)
    return real, lines[line - 1], origin


def _read(descriptor: int, path: str) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise ToolError("LIMIT_EXCEEDED", f"{path} is larger than 8 MiB, so its lines are not followed.")
    return data
