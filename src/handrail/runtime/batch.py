"""Batches: the calls of one assistant message. Nothing of a batch runs until everything about it is decided."""

import time
from contextlib import suppress
from typing import Any

import msgspec

from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.events import ToolCallEnd, ToolCallError
from handrail.protocol.permissions import Answer
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import convert
from handrail.runtime import latch
from handrail.runtime.closing import build_error_result, require_result
from handrail.runtime.pipeline import (
    DECIDING,
    RUNNING,
    close_call,
    close_interrupted,
    execute_call,
    fail_unrecorded,
    take_steps,
)
from handrail.runtime.recovery import recover
from handrail.runtime.reloading import load_call
from handrail.runtime.session import PendingCall, Session
from handrail.runtime.stacking import rebase_later_calls
from handrail.runtime.waiting_trials import find_preview_id
from handrail.store.approvals import list_ready_batches
from handrail.store.inbox import find_last_request
from handrail.store.journal import DuplicateCallError
from handrail.tools.contract import ApprovalNeededError

_MIN_BUDGET_CHARS = 2_000
_Results = tuple[ToolResult[Any], ...]


def run_batch(session: Session, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
    """Decides all calls, then runs all of them or parks all of them. `fresh`: no id can be known already."""
    here = [call.tool_call_id for call in calls]
    session.cancel_tokens.begin(here)
    try:
        return _run_batch(session, calls, fresh)
    finally:
        session.cancel_tokens.end(here)


def _run_batch(session: Session, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
    batch = [PendingCall(call, time.perf_counter(), session.characters) for call in calls]
    known: dict[str, ToolResult[Any]] | Parked = {}
    todo = batch
    try:
        known = {} if fresh else _known(session, batch)
        if isinstance(known, Parked):
            return known
        todo = [flight for flight in batch if flight.call.tool_call_id not in known] if known else batch
        _decide_all(session, todo, fresh)
        asks = len(calls) == 1 and todo and todo[0].tool.asks is not None
        if asks and (asked := _put_question(session, todo[0])) is not None:
            return asked
        if latch.request_approvals(session, todo):
            return latch.park_batch(session, todo)
        return _outcome(_run_all(session, batch, known))
    except DuplicateCallError:
        return _run_batch(session, calls, fresh=False)  # somebody parked calls of these ids a moment ago
    except StoreError as error:  # every call has a result, also where it cannot be written down
        for pending in todo:
            fail_unrecorded(session, pending, error)
        found = known if isinstance(known, dict) else {}
        return Done(results=tuple(found.get(one.call.tool_call_id) or require_result(one) for one in batch))
    except BaseException as error:
        if not isinstance(error, Exception):
            _cut_short(session, todo)
        raise


def refuse_batch(session: Session, calls: tuple[ToolCall, ...], error: ToolError) -> Done | Parked:
    """Ends the calls of a batch that nobody began: this error is their result. Those that were begun keep their own;
    Parked where one waits for a person."""
    from handrail.runtime.refusing import build_refused_calls  # noqa: PLC0415  hardly ever needed

    batch = build_refused_calls(session, calls, error)
    known = _known(session, batch)
    return known if isinstance(known, Parked) else _outcome(_run_all(session, batch, known))


def answer_request(session: Session, request_id: str, given: Answer) -> Done | Parked | None:
    """Answers a permission request; None when it had an answer. With the last answer of its batch, the batch runs."""
    try:
        calls = latch.record_answer(session, request_id, given)
        return _outcome(_run_taken(session, calls)) if isinstance(calls, list) else calls
    except Exception:
        raise
    except BaseException:  # an interrupt: the answer may count already, and somebody has to be able to run it
        with suppress(StoreError, UsageError):
            latch.release_batch(session, latch.load_request(session, request_id).request.batch_id)
        raise


def resume_batches(session: Session) -> Done | None:
    """Runs what killed processes left of batches that everything is answered of; None where there is nothing. Of a
    batch that has to wait once more there are no results yet."""
    recover(session)
    results: list[ToolResult[Any]] = []
    for batch_id in list_ready_batches(session.journal.database):
        found = _run_taken(session, latch.claim_batch(session, batch_id))
        results += () if isinstance(found, Parked) else found
    return Done(results=tuple(results)) if results else None


def _outcome(results: _Results | Parked) -> Done | Parked:
    return results if isinstance(results, Parked) else Done(results=results)


def _run_taken(session: Session, calls: list[str]) -> _Results | Parked:
    """Runs the calls of a batch that this process has taken over; those that have a result already keep it."""
    todo: list[PendingCall] = []
    session.cancel_tokens.begin(calls)
    try:
        batch, known = _taken(session, calls)
        todo += [flight for flight in batch if flight.journal_state != "finished"]
        latch.redecide(session, todo)
        return _run_all(session, batch, known)
    except BaseException as error:
        if not isinstance(error, Exception):
            _cut_short(session, todo)
        _let_be(session, calls)
        raise
    finally:
        session.cancel_tokens.end(calls)


def _taken(session: Session, calls: list[str]) -> tuple[list[PendingCall], dict[str, ToolResult[Any]]]:
    """The calls as they were decided, and the results of those that have one."""
    entries = [entry for call_id in calls if (entry := session.journal.entry(call_id)) is not None]
    batch = [load_call(session.journal, session.offer, entry, session.characters) for entry in entries]
    known: dict[str, ToolResult[Any]] = {}
    for entry, pending in zip(entries, batch, strict=True):
        if entry.state == "finished":
            known[entry.id] = _first_result(session, pending)
            pending.change_set = session.journal.change_of(entry)
        elif (asked := find_last_request(session.journal.database, entry.id)) is not None:
            pending.preview_id = find_preview_id(asked)  # so that it goes with the result, whatever cuts the call short
    return batch, known


def _let_be(session: Session, calls: list[str]) -> None:
    """What has no result and was not begun can be had by whoever comes next."""
    with suppress(StoreError):
        entries = [entry for call_id in calls if (entry := session.journal.entry(call_id)) is not None]
        for batch_id in {entry.batch_id for entry in entries}:
            latch.release_batch(session, batch_id)


def _decide_all(session: Session, todo: list[PendingCall], fresh: bool) -> None:
    """Decides every call."""
    for pending in todo:
        pending.id_is_ours, pending.batch_id = fresh, todo[0].call.tool_call_id
        take_steps(session, pending, DECIDING)
    if len(todo) > 1:
        session.workspace.drop_cached()  # the calls before it may change the file


def _put_question(session: Session, pending: PendingCall) -> Parked | None:
    """What the model asks waits for its reply; but only a question that is alone is put."""
    from handrail.runtime.questions import park_question  # noqa: PLC0415  few calls ask something

    return park_question(session, pending)


def _run_all(session: Session, batch: list[PendingCall], known: dict[str, ToolResult[Any]]) -> _Results | Parked:
    """Runs decided calls in order, each with what is left of the batch's budget; those that only look, side by side.
    Where what one of them came to asks, it waits, and with it those after it."""
    left = session.batch_characters
    results: list[ToolResult[Any]] = []
    for number, pending in enumerate(batch, start=1):
        budget = min(session.characters, max(left, _MIN_BUDGET_CHARS))
        if number < len(batch) and pending.parallel_stop is None:
            _run_ahead(session, batch[number - 1 :], known, budget)
        try:
            result = known.get(pending.call.tool_call_id) or _run(session, pending, budget)
        except ApprovalNeededError as asks:
            parked = _park_late(session, pending, [one for one in batch if one.call.tool_call_id not in known], asks)
            if parked is not None:
                return parked
            result = require_result(pending)
        if number < len(batch):
            rebase_later_calls(session, pending, batch[number:])
        left -= len(result.content)
        results.append(result)
    return tuple(results)


def _run_ahead(session: Session, batch: list[PendingCall], known: dict[str, ToolResult[Any]], budget: int) -> None:
    from handrail.runtime.side_by_side import run_ahead  # noqa: PLC0415  most batches are one call

    run_ahead(session, batch, known, budget)


def _has_run(pending: PendingCall, budget: int) -> bool:
    from handrail.runtime.side_by_side import has_run  # noqa: PLC0415  as above

    return has_run(pending, budget)


def _park_late(
    session: Session, pending: PendingCall, batch: list[PendingCall], asks: ApprovalNeededError
) -> Parked | None:
    """None where the question cannot be put, since its folder is gone by now: that is the call's failure."""
    from handrail.runtime.late_parking import park_after_run  # noqa: PLC0415  few commands ask so late

    try:
        return park_after_run(session, pending, batch, asks)
    except ToolError as error:
        pending.fail(error)
        close_call(session, pending)
        return None


def _cut_short(session: Session, batch: list[PendingCall]) -> None:
    """An interrupt ends the whole batch: every call that has no result yet was cancelled."""
    for pending in batch:
        close_interrupted(session, pending)
    session.journal.deliver()


def _run(session: Session, pending: PendingCall, budget: int) -> ToolResult[Any]:
    running = RUNNING if pending.parallel_stop is None or not _has_run(pending, budget) else ()
    pending.budget = budget
    try:
        execute_call(session, pending, running)
    except DuplicateCallError:
        return _first_result(session, pending)
    return require_result(pending)


def _known(session: Session, batch: list[PendingCall]) -> dict[str, ToolResult[Any]] | Parked:
    """Calls whose id was used before: they get the first result, and run nothing."""
    known: dict[str, ToolResult[Any]] = {}
    for pending in batch:
        entry = session.journal.entry(pending.call.tool_call_id)
        if entry is None:
            continue
        if entry.state == "parked":
            parked = latch.load_parked(session, entry.batch_id)
            if parked.requests or parked.questions:
                return parked  # otherwise somebody answered just now, and runs it
        known[entry.id] = _first_result(session, pending)
    return known


def _first_result(session: Session, pending: PendingCall) -> ToolResult[Any]:
    """The result of the call that had the id first; waits a little where it is still running. What a process did not
    begin because it was killed, also while we wait for it, is run here."""
    until, pause = time.monotonic() + session.lock_seconds, 0.001
    while time.monotonic() < until:
        entry = session.journal.entry(pending.call.tool_call_id)
        if entry is not None and entry.end_seq is not None:
            return _result_at(session, entry.end_seq)
        if entry is not None and _run_taken(session, latch.claim_batch(session, entry.batch_id)):
            continue
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    pending.error = pending.result = None
    pending.fail(ToolError("CONFLICT", "A call of this id is still running; ask again for its result."))
    build_error_result(session, pending)
    return require_result(pending)


def _result_at(session: Session, seq: int) -> ToolResult[Any]:
    event = session.journal.event(seq)
    if not isinstance(event, ToolCallEnd | ToolCallError):
        raise StoreError(f"event {seq} of session {session.id} should hold a result and cannot be read")
    result = event.result
    tool = session.offer.get(result.name)
    if tool is None or result.data is None or tool.spec.foreign is not None:
        return result
    try:
        return msgspec.structs.replace(result, data=convert(result.data, tool.spec.data))
    except msgspec.ValidationError:
        return result  # an older version of the tool wrote it
