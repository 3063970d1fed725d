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
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.events import ToolCallEnd, ToolCallError
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import convert
from handrail.runtime.execute import (
    DECIDING,
    RUNNING,
    close_interrupted,
    execute_call,
    fail_unrecorded,
    take_steps,
)
from handrail.runtime.park import (
    claim_batch,
    load_parked,
    park_after_run,
    park_for_approval,
    park_question,
    redecide,
    release_batch,
)
from handrail.runtime.pending_call import load_call
from handrail.runtime.recovery import recover
from handrail.runtime.results import build_error_result, require_result
from handrail.runtime.session import PendingCall, Session
from handrail.store.journal import DuplicateCallError
from handrail.store.open_calls import list_ready_batches
from handrail.tools.tool import ApprovalNeededError

# § [runtime.stacking] Calls of one batch were approved together: what one of them changed is no surprise to those
# § that come after it.

_NOT_KEPT = (
    "This was tried on top of what an earlier call of its batch would change, and that was not kept, or is another"
)


def rebase_later_calls(done: PendingCall, later: list[PendingCall]) -> None:
    """To be called when a call has its result: those that were approved with it go by what it left."""
    if not later:
        return
    changes = _changed(done)
    if changes is not None:
        _expect(changes, later)
    if any(pending.approval is not None and pending.approval.unmet_previews for pending in later):
        _check_below(done, later)


def _changed(pending: PendingCall) -> ChangeSet | None:
    if pending.output is None:
        return pending.change_set
    changes: object = getattr(pending.output, "changes", None)  # a custom tool may have returned anything
    return changes if isinstance(changes, ChangeSet) else None


def _expect(changes: ChangeSet, later: list[PendingCall]) -> None:
    after = {change.path: change.after for change in changes.changes}
    for pending in later:
        if pending.approval is not None:
            bound_files = tuple(
                msgspec.structs.replace(file, hash=after.get(file.real or "", file.hash))
                for file in pending.approval.bound_files
            )
            pending.approval = msgspec.structs.replace(pending.approval, bound_files=bound_files)


def _check_below(done: PendingCall, later: list[PendingCall]) -> None:
    """A preview that builds on an earlier call is committed only if that call was. Its output can be had anyway."""
    if _changed(done) is not None:
        preview_id = done.request.preview_id if done.request is not None else None
        met = {preview_id or done.call.tool_call_id}
        for pending in later:
            if (approval := pending.approval) is not None:
                pending.approval = msgspec.structs.replace(approval, unmet_previews=approval.unmet_previews - met)
    approval = later[0].approval
    if approval is not None and approval.unmet_previews and approval.answer and approval.answer.kind != "output":
        later[0].fail(ToolError("CONFLICT", f"{_NOT_KEPT}. Nothing was kept. Call again."))


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
        if asks and (asked := park_question(session, todo[0])) is not None:
            return asked
        if any(pending.needs_approval for pending in todo) and (parked := park_for_approval(session, todo)):
            return parked
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


def resume_batches(session: Session) -> Done | None:
    """Runs what killed processes left of batches that everything is answered of; None where there is nothing. Of a
    batch that has to wait once more there are no results yet."""
    recover(session)
    results: list[ToolResult[Any]] = []
    for batch_id in list_ready_batches(session.journal.database):
        outcome = run_claimed(session, claim_batch(session, batch_id))
        results += outcome.results if isinstance(outcome, Done) else ()
    return Done(results=tuple(results)) if results else None


def _outcome(results: _Results | Parked) -> Done | Parked:
    return results if isinstance(results, Parked) else Done(results=results)


def run_claimed(session: Session, calls: list[str]) -> Done | Parked:
    """Runs the calls of a batch that this process has claimed. Calls that have a result keep it."""
    todo: list[PendingCall] = []
    session.cancel_tokens.begin(calls)
    try:
        batch, known = _taken(session, calls)
        todo += [flight for flight in batch if flight.journal_state != "finished"]
        redecide(session, todo)
        return _outcome(_run_all(session, batch, known))
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
    return batch, known


def _let_be(session: Session, calls: list[str]) -> None:
    """What has no result and was not begun can be had by whoever comes next."""
    with suppress(StoreError):
        entries = [entry for call_id in calls if (entry := session.journal.entry(call_id)) is not None]
        for batch_id in {entry.batch_id for entry in entries}:
            release_batch(session, batch_id)


def _decide_all(session: Session, todo: list[PendingCall], fresh: bool) -> None:
    """Decides every call."""
    for pending in todo:
        pending.id_is_ours, pending.batch_id = fresh, todo[0].call.tool_call_id
        take_steps(session, pending, DECIDING)
    if len(todo) > 1:
        session.workspace.drop_cached()  # the calls before it may change the file


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
            parked = park_after_run(
                session, pending, [one for one in batch if one.call.tool_call_id not in known], asks
            )
            if parked is not None:
                return parked
            result = require_result(pending)
        if number < len(batch):
            rebase_later_calls(pending, batch[number:])
        left -= len(result.content)
        results.append(result)
    return tuple(results)


def _run_ahead(session: Session, batch: list[PendingCall], known: dict[str, ToolResult[Any]], budget: int) -> None:

    run_ahead(session, batch, known, budget)


def _has_run(pending: PendingCall, budget: int) -> bool:

    return has_run(pending, budget)


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
            parked = load_parked(session, entry.batch_id)
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
        if entry is not None and (calls := claim_batch(session, entry.batch_id)):
            run_claimed(session, calls)
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
