"""What a person does to the workspace: undo and redo. On the record like every call, but no model can call it."""

import contextlib
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

import msgspec

from handrail.changes import choosing
from handrail.changes.choosing import Within, last_undo
from handrail.changes.settling import is_within, settle_cut_off
from handrail.protocol.call import ToolCall
from handrail.protocol.change import ChangeRecord
from handrail.protocol.decision import Decision, Facts, PathFact
from handrail.protocol.error import StoreError, ToolError, UsageError
from handrail.protocol.result import ToolResult
from handrail.runtime import steps
from handrail.runtime.closing import sealed
from handrail.runtime.cut_off import BY_PERSON
from handrail.runtime.pipeline import cut_short, fly, take_steps
from handrail.runtime.session import Flight, Session
from handrail.store.change_log import ChangeLog, Entry
from handrail.store.runner import is_dead
from handrail.tools.undo import UndoArguments, UndoData, preview_undo, undo_tool

__all__ = ["choice", "diff_of", "diff_of_turn", "last_changes", "last_undo", "preview", "undo"]
Resolve = Literal["later", "lines"]
"""What to do where a file was changed since: take the later changes back too, or only what is as it was left."""
Choose = Callable[[ChangeLog, Within], tuple[int, ...]]
_ALLOWED = Decision(decision="allow", rule=BY_PERSON, reason="a person asked for it")


def choice(number: int | tuple[int, ...] | None, turn: bool, session: str | None) -> Choose:
    """Which change sets an undo is about."""
    if (number is not None) + turn + (session is not None) > 1:
        raise UsageError("undo takes a number, turn=True or a session: one of them")
    if number is not None:
        numbers = (number,) if isinstance(number, int) else number
        return lambda log, _: tuple(choosing.one_change(log, one)[0] for one in numbers)
    if session is not None:
        return lambda log, within: choosing.of_session(log, session, within)
    return choosing.last_turn if turn else choosing.last_change


def undo(session: Session, choose: Choose, resolve: Resolve | None) -> ToolResult[UndoData]:
    """Takes change sets back."""
    call_id = session.journal.new_call_id()
    args = {"numbers": (), "lines": resolve == "lines"}
    call = ToolCall(tool_call_id=call_id, name="undo", args=args, trace_id=call_id, timestamp=datetime.now(UTC))
    flight = Flight(call, time.perf_counter(), session.characters)
    flight.fresh, flight.tool = True, undo_tool(session.workspace, session.recorder)

    def choose_sets(session: Session, flight: Flight) -> None:
        numbers = _chosen(session, choose, resolve)
        flight.call = msgspec.structs.replace(call, args={**args, "numbers": numbers})
        flight.args = {**args, "numbers": list(numbers)}

    try:
        take_steps(session, flight, (_allow, choose_sets, steps.check_arguments, _gather_facts))
        fly(session, flight)
    except BaseException as error:
        if not isinstance(error, Exception):
            cut_short(session, flight)
        raise
    return sealed(flight)


def preview(session: Session, choose: Choose, resolve: Resolve | None) -> str:
    """The differences that an undo would make; ToolError when it would be refused."""
    arguments = UndoArguments(numbers=_chosen(session, choose, resolve), lines=resolve == "lines")
    return preview_undo(session.workspace, session.recorder, arguments)


def last_changes(session: Session, limit: int) -> list[ChangeRecord]:
    """The last change sets of the workspace, the latest first."""
    settle_killed(session)
    history = session.recorder.history
    if history.is_empty:
        return []
    return [_record(entry) for entry in islice((one for one in history.log.latest() if one.state == "done"), limit)]


def _record(entry: Entry) -> ChangeRecord:
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


def diff_of(session: Session, number: int | None) -> tuple[int, str]:
    """The differences that a change set made, and its number: the last one in effect where none is given."""
    settle_killed(session)
    log = session.recorder.history.log
    chosen = _last_in_effect(session) if number is None else choosing.known(log, number).number
    diffs = log.diffs(chosen)
    if diffs is None:
        raise ToolError("NOT_FOUND", f"Change {chosen} is older than changes are kept for.")
    return chosen, "".join(diffs)


def diff_of_turn(session: Session) -> tuple[tuple[int, ...], str]:
    """What the last turn's change sets did that are in effect, one after the other, and their numbers."""
    settle_killed(session)
    _last_in_effect(session)
    numbers = choosing.last_turn(session.recorder.history.log, _within(session))[::-1]
    return numbers, "".join(diff_of(session, number)[1] for number in numbers)


def _last_in_effect(session: Session) -> int:
    try:
        return choosing.last_change(session.recorder.history.log, _within(session))[0]
    except ToolError:
        raise ToolError("NO_CHANGE", "No change is in effect in this workspace.") from None


def _within(session: Session) -> Within:
    """All but what another session did in its own folder, which nobody misses in the workspace."""
    home, own = os.fsencode(os.path.dirname(session.folder)) + b"/", os.fsencode(session.folder) + b"/"

    def within(entry: Entry) -> bool:
        return all(not step.path.startswith(home) or step.path.startswith(own) for step in entry.body.steps)

    return within


def settle_killed(session: Session) -> None:
    """Settles what killed processes left begun in this workspace, whatever their session. What cannot be settled is
    left for somebody who can: it does not stand in the way of anything else."""
    history = session.recorder.history
    if history.is_empty:
        return
    for entry in history.log.begun():
        if _is_left(session, entry):
            with contextlib.suppress(ToolError, StoreError, OSError):
                settle_cut_off(session.workspace, history, entry.number)


def _is_left(session: Session, entry: Entry) -> bool:
    home = os.path.join(os.path.dirname(session.folder), entry.session)
    return is_dead(home, entry.runner) and is_within(session.workspace, entry)


def _chosen(session: Session, choose: Choose, resolve: Resolve | None) -> tuple[int, ...]:
    settle_killed(session)
    log = session.recorder.history.log
    numbers = choose(log, _within(session))
    return choosing.with_later(log, numbers) if resolve == "later" else numbers


def _gather_facts(_: Session, flight: Flight) -> None:
    """The files as they are spelled, which undo changes under no other name; what they became is its own to judge."""
    paths = flight.tool.touches(flight.arguments).writes
    flight.facts = Facts(paths=tuple(PathFact(path=path, access="write", kind="file", real=path) for path in paths))


def _allow(_: Session, flight: Flight) -> None:
    flight.decision = _ALLOWED
