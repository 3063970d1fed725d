"""Batches: the calls of one assistant message. Nothing of a batch runs until everything about it is decided."""

import time
from typing import Any

import msgspec

from handrail.protocol.batch import Done, Parked
from handrail.protocol.call import ToolCall
from handrail.protocol.error import StoreError, ToolError
from handrail.protocol.event import ToolCallEnd, ToolCallError
from handrail.protocol.result import ToolResult
from handrail.runtime import latch
from handrail.runtime.closing import seal, sealed
from handrail.runtime.pipeline import DECIDING, fly, take_steps
from handrail.runtime.session import Flight, Session
from handrail.store.journal import DuplicateCallError

_SMALLEST_BUDGET = 2_000
_WAIT_SECONDS = 5.0


def run_batch(session: Session, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
    """Decides all calls, then runs all of them or parks all of them. `fresh`: no id can be known already."""
    flights = [Flight(call, time.perf_counter(), session.characters) for call in calls]
    known = {} if fresh else _known(session, flights)
    if isinstance(known, Parked):
        return known
    todo = [flight for flight in flights if flight.call.tool_call_id not in known] if known else flights
    for flight in todo:
        flight.batch_id = todo[0].call.tool_call_id
        take_steps(session, flight, DECIDING)
    if len(todo) > 1:
        session.workspace.let_go()  # the calls before it may change the file
    waiting = [flight for flight in todo if latch.needs_answer(flight)]
    for flight in waiting:
        take_steps(session, flight, (latch.ask,))
    if any(latch.needs_answer(flight) for flight in waiting):
        return latch.park(session, todo)
    return Done(results=run_all(session, flights, known))


def run_all(session: Session, flights: list[Flight], known: dict[str, ToolResult[Any]]) -> tuple[ToolResult[Any], ...]:
    """Runs decided calls in order, each with what is left of the batch's budget."""
    left = session.batch_characters
    results: list[ToolResult[Any]] = []
    for flight in flights:
        flight.budget = min(session.characters, max(left, _SMALLEST_BUDGET))
        result = known.get(flight.call.tool_call_id) or _run(session, flight)
        left -= len(result.content)
        results.append(result)
    return tuple(results)


def _run(session: Session, flight: Flight) -> ToolResult[Any]:
    try:
        fly(session, flight)
    except DuplicateCallError:
        return _first_result(session, flight)
    return sealed(flight)


def _known(session: Session, flights: list[Flight]) -> dict[str, ToolResult[Any]] | Parked:
    """Calls whose id was used before: they get the first result, and run nothing."""
    known: dict[str, ToolResult[Any]] = {}
    for flight in flights:
        entry = session.journal.entry(flight.call.tool_call_id)
        if entry is not None and entry.state == "parked":
            return latch.waiting(session, entry.batch_id)
        if entry is not None:
            known[entry.id] = _first_result(session, flight)
    return known


def _first_result(session: Session, flight: Flight) -> ToolResult[Any]:
    """The result of the call that had the id first; waits a little where it is still running."""
    until, pause = time.monotonic() + _WAIT_SECONDS, 0.001
    while time.monotonic() < until:
        entry = session.journal.entry(flight.call.tool_call_id)
        if entry is not None and entry.end_seq is not None:
            return _result_at(session, entry.end_seq)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    flight.error = None
    flight.fail(ToolError("CONFLICT", "A call of this id is still running; ask again for its result."))
    seal(session, flight)
    return sealed(flight)


def _result_at(session: Session, seq: int) -> ToolResult[Any]:
    event = session.journal.event(seq)
    if not isinstance(event, ToolCallEnd | ToolCallError):
        raise StoreError(f"event {seq} of session {session.id} should hold a result and cannot be read")
    result = event.result
    tool = session.offer.get(result.name)
    if tool is None or result.data is None:
        return result
    try:
        return msgspec.structs.replace(result, data=msgspec.convert(result.data, tool.spec.data))
    except msgspec.ValidationError:
        return result  # an older version of the tool wrote it
