"""Runs a batch."""

import time
from collections.abc import Container, Iterator
from contextlib import suppress
from itertools import takewhile
from threading import Event, Thread
from typing import Any

import msgspec

from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.events import ToolCallEnd, ToolCallError
from handrail.protocol.permissions import Answer
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import convert
from handrail.runtime import approvals
from handrail.runtime.execute import (
    DECIDING,
    RUNNING,
    close_call,
    close_interrupted,
    execute_call,
    fail_unrecorded,
    take_steps,
)
from handrail.runtime.pending_call import find_preview_id, load_call
from handrail.runtime.recovery import recover
from handrail.runtime.results import build_error_result, require_result
from handrail.runtime.session import PendingCall, Session
from handrail.store.inbox import find_last_request
from handrail.store.journal import DuplicateCallError
from handrail.store.open_calls import list_ready_batches
from handrail.tools.tool import ApprovalNeededError

# § [runtime.stacking] Calls of one batch were approved together: what one of them changed is no surprise to those
# § that come after it.

_NOT_KEPT = (
    "This was tried on top of what an earlier call of its batch would change, and that was not kept, or is another"
)


def rebase_later_calls(session: Session, done: PendingCall, later: list[PendingCall]) -> None:
    """To be called when a call has its result: those that were approved with it go by what it left."""
    if not later:
        return
    changes = _changed(done)
    if changes is not None:
        _expect(changes, later)
    if any(flight.unmet_previews for flight in later):
        _check_below(session, done, later)


def _changed(pending: PendingCall) -> ChangeSet | None:
    if pending.output is None:
        return pending.change_set
    changes: object = getattr(pending.output, "changes", None)  # a custom tool may have returned anything
    return changes if isinstance(changes, ChangeSet) else None


def _expect(changes: ChangeSet, later: list[PendingCall]) -> None:
    after = {change.path: change.after for change in changes.changes}
    for pending in later:
        pending.bound_files = tuple(
            msgspec.structs.replace(basis, hash=after.get(basis.real or "", basis.hash))
            for basis in pending.bound_files
        )


def _check_below(session: Session, done: PendingCall, later: list[PendingCall]) -> None:
    """A command that was tried on top of another is committed only if that was. What it printed can be had anyway."""
    if _changed(done) is not None:
        asked = done.request or find_last_request(session.journal.database, done.call.tool_call_id)
        sealed = find_preview_id(asked) if asked is not None else None
        for pending in later:
            pending.unmet_previews.discard(sealed or done.call.tool_call_id)
    following = later[0]
    if following.unmet_previews and following.answer is not None and following.answer.kind != "output":
        following.fail(ToolError("CONFLICT", f"{_NOT_KEPT}. Nothing was kept. Call again."))


# § [runtime.batch] Batches: the calls of one assistant message. Nothing of a batch runs until everything about it
# § is decided.

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
        if approvals.request_approvals(session, todo):
            return approvals.park_batch(session, todo)
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
    from handrail.runtime.pending_call import build_refused_calls  # noqa: PLC0415  hardly ever needed

    batch = build_refused_calls(session, calls, error)
    known = _known(session, batch)
    return known if isinstance(known, Parked) else _outcome(_run_all(session, batch, known))


def answer_request(session: Session, request_id: str, given: Answer) -> Done | Parked | None:
    """Answers a permission request; None when it had an answer. With the last answer of its batch, the batch runs."""
    try:
        calls = approvals.record_answer(session, request_id, given)
        return _outcome(_run_taken(session, calls)) if isinstance(calls, list) else calls
    except Exception:
        raise
    except BaseException:  # an interrupt: the answer may count already, and somebody has to be able to run it
        with suppress(StoreError, UsageError):
            approvals.release_batch(session, approvals.load_request(session, request_id).request.batch_id)
        raise


def resume_batches(session: Session) -> Done | None:
    """Runs what killed processes left of batches that everything is answered of; None where there is nothing. Of a
    batch that has to wait once more there are no results yet."""
    recover(session)
    results: list[ToolResult[Any]] = []
    for batch_id in list_ready_batches(session.journal.database):
        found = _run_taken(session, approvals.claim_batch(session, batch_id))
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
        approvals.redecide(session, todo)
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
            approvals.release_batch(session, batch_id)


def _decide_all(session: Session, todo: list[PendingCall], fresh: bool) -> None:
    """Decides every call."""
    for pending in todo:
        pending.id_is_ours, pending.batch_id = fresh, todo[0].call.tool_call_id
        take_steps(session, pending, DECIDING)
    if len(todo) > 1:
        session.workspace.drop_cached()  # the calls before it may change the file


def _put_question(session: Session, pending: PendingCall) -> Parked | None:
    """What the model asks waits for its reply; but only a question that is alone is put."""
    from handrail.runtime.approvals import park_question  # noqa: PLC0415  few calls ask something

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

    run_ahead(session, batch, known, budget)


def _has_run(pending: PendingCall, budget: int) -> bool:

    return has_run(pending, budget)


def _park_late(
    session: Session, pending: PendingCall, batch: list[PendingCall], asks: ApprovalNeededError
) -> Parked | None:
    """None where the question cannot be put, since its folder is gone by now: that is the call's failure."""
    from handrail.runtime.approvals import park_after_run  # noqa: PLC0415  few commands ask so late

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
            parked = approvals.load_parked(session, entry.batch_id)
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
        if entry is not None and _run_taken(session, approvals.claim_batch(session, entry.batch_id)):
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


# § [runtime.side_by_side] Calls of one batch that only look: side by side, in threads. What they come to is the
# § same as one after the other, and it is written down in the order of the calls.

MAX_PARALLEL_CALLS = 8
"""Threads of one batch, the caller's own among them."""


def run_ahead(session: Session, batch: list[PendingCall], known: Container[str], budget: int) -> None:
    """Runs the calls at the beginning that only look, where there are several, up to their results: nothing is written
    down yet. `known`: those that have a result."""
    looking = [*takewhile(lambda pending: _only_looks(pending) and pending.call.tool_call_id not in known, batch)]
    if len(looking) > 1:
        _run_beside(session, looking, budget)


def has_run(pending: PendingCall, budget: int) -> bool:
    """Whether a call has run ahead, and came to what it would have come to in its turn, with this budget. If not, it
    has only looked, and is to be run."""
    if pending.parallel_stop is None:
        return False
    result = pending.result
    whole = result is None or not (result.meta.truncated or len(result.content) > budget)
    if budget < pending.budget and not whole:
        pending.output = pending.result = pending.error = pending.parallel_stop = None
    return pending.parallel_stop is not None


def _only_looks(pending: PendingCall) -> bool:
    """A custom tool may rely on being called by one thread at a time."""
    spec = pending.tool.spec
    return (
        pending.error is None and pending.parallel_stop is None and not spec.side_effects and spec.category == "builtin"
    )


def _run_beside(session: Session, batch: list[PendingCall], budget: int) -> None:
    """An interrupt waits until all of them have stopped, and they are told to."""
    stop, failures = Event(), list[Exception]()
    for pending in batch:
        pending.budget, pending.parallel_stop = budget, stop
    todo = iter(batch)
    threads = [
        Thread(target=_work, args=(session, todo, failures)) for _ in range(min(len(batch), MAX_PARALLEL_CALLS) - 1)
    ]
    try:
        with suppress(RuntimeError):  # there can be no more threads: those that there are do it
            for thread in threads:
                thread.start()
        _work(session, todo, failures)
        _join(threads)
    except BaseException:
        stop.set()
        _join(threads)
        raise
    if failures:
        raise failures[0]


def _work(session: Session, todo: Iterator[PendingCall], failures: list[Exception]) -> None:
    """Takes call after call; the iterator of a list gives each to one thread only."""
    for pending in todo:
        if pending.parallel_stop is None or pending.parallel_stop.is_set():
            return
        try:
            take_steps(session, pending, RUNNING)
        except Exception as error:  # of the store: whoever waits has to hear of it
            failures.append(error)
        finally:
            session.workspace.drop_cached()


def _join(threads: list[Thread]) -> None:
    for thread in threads:
        if thread.ident is not None:
            thread.join()
