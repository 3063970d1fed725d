"""Batches: the calls of one assistant message. Nothing of a batch runs until everything about it is decided."""

import time
from contextlib import suppress
from typing import Any

import msgspec

from handrail.protocol.batch import Done, Parked
from handrail.protocol.call import ToolCall
from handrail.protocol.error import StoreError, ToolError, UsageError
from handrail.protocol.event import ToolCallEnd, ToolCallError
from handrail.protocol.permission import Answer
from handrail.protocol.reading import converted
from handrail.protocol.result import ToolResult
from handrail.runtime import latch
from handrail.runtime.closing import seal_error, sealed
from handrail.runtime.pipeline import DECIDING, RUNNING, close, cut_short, fail_unrecorded, fly, take_steps
from handrail.runtime.recovery import recover
from handrail.runtime.reloading import reloaded
from handrail.runtime.session import Flight, Session
from handrail.runtime.stacking import stack
from handrail.runtime.waiting_trials import sealed_in
from handrail.store.journal import DuplicateCallError
from handrail.store.requests import request_about
from handrail.tools.contract import AsksError

_SMALLEST_BUDGET = 2_000
_Results = tuple[ToolResult[Any], ...]


def run_batch(session: Session, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
    """Decides all calls, then runs all of them or parks all of them. `fresh`: no id can be known already."""
    here = [call.tool_call_id for call in calls]
    session.cancelling.begin(here)
    try:
        return _run_batch(session, calls, fresh)
    finally:
        session.cancelling.end(here)


def _run_batch(session: Session, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
    flights = [Flight(call, time.perf_counter(), session.characters) for call in calls]
    known: dict[str, ToolResult[Any]] | Parked = {}
    todo = flights
    try:
        known = {} if fresh else _known(session, flights)
        if isinstance(known, Parked):
            return known
        todo = [flight for flight in flights if flight.call.tool_call_id not in known] if known else flights
        _decide_all(session, todo, fresh)
        asks = len(calls) == 1 and todo and todo[0].tool.asks is not None
        if asks and (asked := _put_question(session, todo[0])) is not None:
            return asked
        if latch.ask(session, todo):
            return latch.park(session, todo)
        return _outcome(_run_all(session, flights, known))
    except DuplicateCallError:
        return _run_batch(session, calls, fresh=False)  # somebody parked calls of these ids a moment ago
    except StoreError as error:  # every call has a result, also where it cannot be written down
        for flight in todo:
            fail_unrecorded(session, flight, error)
        found = known if isinstance(known, dict) else {}
        return Done(results=tuple(found.get(one.call.tool_call_id) or sealed(one) for one in flights))
    except BaseException as error:
        if not isinstance(error, Exception):
            _cut_short(session, todo)
        raise


def refuse_batch(session: Session, calls: tuple[ToolCall, ...], error: ToolError) -> Done | Parked:
    """Ends the calls of a batch that nobody began: this error is their result. Those that were begun keep their own;
    Parked where one waits for a person."""
    from handrail.runtime.refusing import refused_flights  # noqa: PLC0415  hardly ever needed

    flights = refused_flights(session, calls, error)
    known = _known(session, flights)
    return known if isinstance(known, Parked) else _outcome(_run_all(session, flights, known))


def answer(session: Session, request_id: str, given: Answer) -> Done | Parked | None:
    """Answers a permission request; None when it had an answer. With the last answer of its batch, the batch runs."""
    try:
        calls = latch.answer(session, request_id, given)
        return _outcome(_run_taken(session, calls)) if isinstance(calls, list) else calls
    except Exception:
        raise
    except BaseException:  # an interrupt: the answer may count already, and somebody has to be able to run it
        with suppress(StoreError, UsageError):
            latch.let_be(session, latch.known_request(session, request_id).request.batch_id)
        raise


def resume(session: Session) -> Done | None:
    """Runs what killed processes left of batches that everything is answered of; None where there is nothing. Of a
    batch that has to wait once more there are no results yet."""
    from handrail.store.batches import ready_batches  # noqa: PLC0415  hardly ever needed

    recover(session)
    results: list[ToolResult[Any]] = []
    for batch_id in ready_batches(session.journal.database):
        found = _run_taken(session, latch.take_up(session, batch_id))
        results += () if isinstance(found, Parked) else found
    return Done(results=tuple(results)) if results else None


def _outcome(results: _Results | Parked) -> Done | Parked:
    return results if isinstance(results, Parked) else Done(results=results)


def _run_taken(session: Session, calls: list[str]) -> _Results | Parked:
    """Runs the calls of a batch that this process has taken over; those that have a result already keep it."""
    todo: list[Flight] = []
    session.cancelling.begin(calls)
    try:
        flights, known = _taken(session, calls)
        todo += [flight for flight in flights if flight.recorded != "finished"]
        latch.decide_again(session, todo)
        return _run_all(session, flights, known)
    except BaseException as error:
        if not isinstance(error, Exception):
            _cut_short(session, todo)
        _let_be(session, calls)
        raise
    finally:
        session.cancelling.end(calls)


def _taken(session: Session, calls: list[str]) -> tuple[list[Flight], dict[str, ToolResult[Any]]]:
    """The calls as they were decided, and the results of those that have one."""
    entries = [entry for call_id in calls if (entry := session.journal.entry(call_id)) is not None]
    flights = [reloaded(session.journal, session.offer, entry, session.characters) for entry in entries]
    known: dict[str, ToolResult[Any]] = {}
    for entry, flight in zip(entries, flights, strict=True):
        if entry.state == "finished":
            known[entry.id] = _first_result(session, flight)
            flight.made = session.journal.change_of(entry)
        elif (asked := request_about(session.journal.database, entry.id)) is not None:
            flight.tried = sealed_in(asked)  # so that it goes with the result, whatever cuts the call short
    return flights, known


def _let_be(session: Session, calls: list[str]) -> None:
    """What has no result and was not begun can be had by whoever comes next."""
    with suppress(StoreError):
        entries = [entry for call_id in calls if (entry := session.journal.entry(call_id)) is not None]
        for batch_id in {entry.batch_id for entry in entries}:
            latch.let_be(session, batch_id)


def _decide_all(session: Session, todo: list[Flight], fresh: bool) -> None:
    """Decides every call."""
    for flight in todo:
        flight.fresh, flight.batch_id = fresh, todo[0].call.tool_call_id
        take_steps(session, flight, DECIDING)
    if len(todo) > 1:
        session.workspace.let_go()  # the calls before it may change the file


def _put_question(session: Session, flight: Flight) -> Parked | None:
    """What the model asks waits for its reply; but only a question that is alone is put."""
    from handrail.runtime.questions import put  # noqa: PLC0415  few calls ask something

    return put(session, flight)


def _run_all(session: Session, flights: list[Flight], known: dict[str, ToolResult[Any]]) -> _Results | Parked:
    """Runs decided calls in order, each with what is left of the batch's budget; those that only look, side by side.
    Where what one of them came to asks, it waits, and with it those after it."""
    left = session.batch_characters
    results: list[ToolResult[Any]] = []
    for number, flight in enumerate(flights, start=1):
        budget = min(session.characters, max(left, _SMALLEST_BUDGET))
        if number < len(flights) and flight.stopped is None:
            _run_ahead(session, flights[number - 1 :], known, budget)
        try:
            result = known.get(flight.call.tool_call_id) or _run(session, flight, budget)
        except AsksError as asks:
            parked = _park_late(session, flight, [one for one in flights if one.call.tool_call_id not in known], asks)
            if parked is not None:
                return parked
            result = sealed(flight)
        if number < len(flights):
            stack(session, flight, flights[number:])
        left -= len(result.content)
        results.append(result)
    return tuple(results)


def _run_ahead(session: Session, flights: list[Flight], known: dict[str, ToolResult[Any]], budget: int) -> None:
    from handrail.runtime.side_by_side import run_ahead  # noqa: PLC0415  most batches are one call

    run_ahead(session, flights, known, budget)


def _has_run(flight: Flight, budget: int) -> bool:
    from handrail.runtime.side_by_side import has_run  # noqa: PLC0415  as above

    return has_run(flight, budget)


def _park_late(session: Session, flight: Flight, batch: list[Flight], asks: AsksError) -> Parked | None:
    """None where the question cannot be put, since its folder is gone by now: that is the call's failure."""
    from handrail.runtime.late_parking import park_late  # noqa: PLC0415  few commands ask so late

    try:
        return park_late(session, flight, batch, asks)
    except ToolError as error:
        flight.fail(error)
        close(session, flight)
        return None


def _cut_short(session: Session, flights: list[Flight]) -> None:
    """An interrupt ends the whole batch: every call that has no result yet was cancelled."""
    for flight in flights:
        cut_short(session, flight)
    session.journal.deliver()


def _run(session: Session, flight: Flight, budget: int) -> ToolResult[Any]:
    running = RUNNING if flight.stopped is None or not _has_run(flight, budget) else ()
    flight.budget = budget
    try:
        fly(session, flight, running)
    except DuplicateCallError:
        return _first_result(session, flight)
    return sealed(flight)


def _known(session: Session, flights: list[Flight]) -> dict[str, ToolResult[Any]] | Parked:
    """Calls whose id was used before: they get the first result, and run nothing."""
    known: dict[str, ToolResult[Any]] = {}
    for flight in flights:
        entry = session.journal.entry(flight.call.tool_call_id)
        if entry is None:
            continue
        if entry.state == "parked":
            parked = latch.waiting(session, entry.batch_id)
            if parked.requests or parked.questions:
                return parked  # otherwise somebody answered just now, and runs it
        known[entry.id] = _first_result(session, flight)
    return known


def _first_result(session: Session, flight: Flight) -> ToolResult[Any]:
    """The result of the call that had the id first; waits a little where it is still running. What a process did not
    begin because it was killed, also while we wait for it, is run here."""
    until, pause = time.monotonic() + session.lock_seconds, 0.001
    while time.monotonic() < until:
        entry = session.journal.entry(flight.call.tool_call_id)
        if entry is not None and entry.end_seq is not None:
            return _result_at(session, entry.end_seq)
        if entry is not None and _run_taken(session, latch.take_up(session, entry.batch_id)):
            continue
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    flight.error = flight.result = None
    flight.fail(ToolError("CONFLICT", "A call of this id is still running; ask again for its result."))
    seal_error(session, flight)
    return sealed(flight)


def _result_at(session: Session, seq: int) -> ToolResult[Any]:
    event = session.journal.event(seq)
    if not isinstance(event, ToolCallEnd | ToolCallError):
        raise StoreError(f"event {seq} of session {session.id} should hold a result and cannot be read")
    result = event.result
    tool = session.offer.get(result.name)
    if tool is None or result.data is None or tool.spec.foreign is not None:
        return result
    try:
        return msgspec.structs.replace(result, data=converted(result.data, tool.spec.data))
    except msgspec.ValidationError:
        return result  # an older version of the tool wrote it
