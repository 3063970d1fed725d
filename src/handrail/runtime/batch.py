"""A batch: the calls of one assistant message. No call runs before all calls are decided."""

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
from handrail.runtime.decide import DECIDING
from handrail.runtime.execute import (
    close_interrupted,
    execute_call,
    fail_unrecorded,
    prepare_parallel,
    release_call,
    select_steps,
    take_steps,
)
from handrail.runtime.pending_call import PendingCall, load_call
from handrail.runtime.results import build_error_result, build_result, require_result
from handrail.runtime.session import Session
from handrail.store.journal import DuplicateCallError
from handrail.tools.tool import ApprovalNeededError

MAX_PARALLEL_CALLS = 8
"""Threads of one batch, with the caller's own."""
MIN_BUDGET_CHARS = 2_000
_KnownResults = dict[str, ToolResult[Any]]


def run_batch(session: Session, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
    """Decides all calls, then runs all or parks all. `fresh`: the journal cannot know any of the ids."""
    batch = todo = [PendingCall(call, session.characters) for call in calls]
    call_ids = [call.tool_call_id for call in calls]
    known: _KnownResults = {}
    session.cancel_tokens.begin(call_ids)
    try:
        if not fresh:
            repeated = _find_known_results(session, batch)
            if isinstance(repeated, Parked):
                return repeated
            known = repeated
            todo = [pending for pending in batch if pending.call.tool_call_id not in known]
        waits = _decide_all(session, todo, fresh)
        return _park_waiting(session, batch, todo, waits=waits) or _run_all(session, batch, known)
    except DuplicateCallError:
        return run_batch(session, calls, fresh=False)  # another process parked calls of these ids just now
    except StoreError as error:  # each call gets a result, even if it cannot be recorded
        for pending in todo:
            fail_unrecorded(session, pending, error)
        return Done(results=tuple(known.get(one.call.tool_call_id) or require_result(one) for one in batch))
    except BaseException as error:
        _close_if_interrupted(session, todo, error)
        raise
    finally:
        session.cancel_tokens.end(call_ids)


def refuse_batch(session: Session, calls: tuple[ToolCall, ...], error: ToolError) -> Done | Parked:
    """Gives calls that did not begin this error as their result. Calls that began keep their own result."""
    batch = [PendingCall(call, session.characters, calls[0].tool_call_id) for call in calls]
    for pending in batch:
        pending.tool = session.offer.get(pending.call.name) or pending.tool
        pending.fail(error)
    known = _find_known_results(session, batch)
    return known if isinstance(known, Parked) else _run_all(session, batch, known)


def _decide_all(session: Session, batch: list[PendingCall], fresh: bool) -> bool:
    """Whether a call needs approval."""
    waits = False
    for pending in batch:
        pending.id_is_ours, pending.batch_id = fresh, batch[0].call.tool_call_id
        begun = time.perf_counter_ns()
        take_steps(session, pending, DECIDING)
        pending.policy_ns = time.perf_counter_ns() - begun
        waits |= pending.needs_approval
    if len(batch) > 1:
        session.workspace.drop_cached()  # an earlier call may change a cached file
    return waits


def _park_waiting(session: Session, batch: list[PendingCall], todo: list[PendingCall], *, waits: bool) -> Parked | None:
    """Parks the batch if it waits for an approval or a reply. A question is asked only if it is alone."""
    if len(batch) == len(todo) == 1 and todo[0].tool.asks is not None:
        parked = _load_park().park_question(session, todo[0])
        if parked is not None:
            return parked
    return _load_park().park_for_approval(session, todo) if waits else None


def _run_all(session: Session, batch: list[PendingCall], known: _KnownResults) -> Done | Parked:
    """Runs decided calls in order, each with the rest of the batch's budget. Read-only calls run in parallel.

    If the result of a call needs approval, this call and all later ones are parked.
    """
    left = session.batch_characters
    results: list[ToolResult[Any]] = []
    for number, pending in enumerate(batch, start=1):
        budget = min(session.characters, max(left, MIN_BUDGET_CHARS))
        if number < len(batch) and not pending.ran_ahead:
            _run_ahead(session, batch[number - 1 :], known, budget)
        try:
            result = known.get(pending.call.tool_call_id) or _run_call(session, pending, budget)
        except ApprovalNeededError as needed:
            later = [one for one in batch if one.call.tool_call_id not in known]
            parked = _load_park().park_after_run(session, pending, later, needed)
            if parked is not None:
                return parked
            result = require_result(pending)
        if number < len(batch):
            _rebase_later_calls(pending, batch[number:])
        left -= len(result.content)
        results.append(result)
    return Done(results=tuple(results))


def _run_call(session: Session, pending: PendingCall, budget: int) -> ToolResult[Any]:
    if pending.ran_ahead:
        _shorten_result(session, pending, budget)
    pending.budget = budget
    try:
        execute_call(session, pending)
    except DuplicateCallError:
        return _wait_for_result(session, pending)
    return require_result(pending)


def _close_if_interrupted(session: Session, batch: list[PendingCall], error: BaseException) -> None:
    if not isinstance(error, Exception):
        for pending in batch:
            close_interrupted(session, pending)
        session.journal.deliver()


# Batches that this process claimed


def run_claimed(session: Session, call_ids: list[str]) -> Done | Parked:
    """Runs the calls of a claimed batch. Calls with a result keep it."""
    todo: list[PendingCall] = []
    session.cancel_tokens.begin(call_ids)
    try:
        batch, known = _load_batch(session, call_ids)
        todo += [pending for pending in batch if pending.journal_state != "finished"]
        _load_park().redecide(session, todo)
        return _run_all(session, batch, known)
    except BaseException as error:
        _close_if_interrupted(session, todo, error)
        _release_calls(session, call_ids)
        raise
    finally:
        session.cancel_tokens.end(call_ids)


def _load_batch(session: Session, call_ids: list[str]) -> tuple[list[PendingCall], _KnownResults]:
    entries = [entry for call_id in call_ids if (entry := session.journal.entry(call_id)) is not None]
    batch = [load_call(session.journal, session.offer, entry, session.characters) for entry in entries]
    known: _KnownResults = {}
    for entry, pending in zip(entries, batch, strict=True):
        if entry.state == "finished":
            known[entry.id] = _wait_for_result(session, pending)
            pending.change_set = session.journal.change_of(entry)
    return batch, known


def _release_calls(session: Session, call_ids: list[str]) -> None:
    """Lets other processes claim the calls that did not begin."""
    with suppress(StoreError):
        entries = [entry for call_id in call_ids if (entry := session.journal.entry(call_id)) is not None]
        for batch_id in {entry.batch_id for entry in entries}:
            _load_park().release_batch(session, batch_id)


# Repeated calls


def _find_known_results(session: Session, batch: list[PendingCall]) -> _KnownResults | Parked:
    """The results of calls whose id was used before. They do not run again."""
    known: _KnownResults = {}
    for pending in batch:
        entry = session.journal.entry(pending.call.tool_call_id)
        if entry is None:
            continue
        if entry.state == "parked":
            parked = _load_park().load_parked(session, entry.batch_id)
            if parked.requests or parked.questions:
                return parked  # otherwise another process got the answer just now, and runs the call
        known[entry.id] = _wait_for_result(session, pending)
    return known


def _wait_for_result(session: Session, pending: PendingCall) -> ToolResult[Any]:
    """The result of the call that had the id first. If its process is killed before it began, the call runs here."""
    until, pause = time.monotonic() + session.lock_seconds, 0.001
    while time.monotonic() < until:
        entry = session.journal.entry(pending.call.tool_call_id)
        if entry is not None and entry.end_seq is not None:
            return _load_result(session, entry.end_seq)
        if entry is not None and (call_ids := _load_park().claim_batch(session, entry.batch_id)):
            run_claimed(session, call_ids)
            continue
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    pending.error = pending.result = None
    pending.fail(ToolError("CONFLICT", "A call of this id is still running; ask again for its result."))
    build_error_result(pending)
    return require_result(pending)


def _load_result(session: Session, seq: int) -> ToolResult[Any]:
    event = session.journal.event(seq)
    if not isinstance(event, ToolCallEnd | ToolCallError):
        raise StoreError(f"event {seq} of session {session.id} should have a result and cannot be read")
    result = event.result
    tool = session.offer.get(result.name)
    if tool is None or result.data is None or tool.spec.foreign is not None:
        return result
    try:
        return msgspec.structs.replace(result, data=convert(result.data, tool.spec.data))
    except msgspec.ValidationError:
        return result  # an older version of the tool wrote it


# Calls that were approved together: later ones expect what earlier ones changed


def _rebase_later_calls(done: PendingCall, later: list[PendingCall]) -> None:
    """Rebases later calls on what a call changed, so that their approvals stay valid."""
    changes = _get_changes(done)
    if changes is not None:
        _rebase_bound_files(changes, later)
    if any(pending.approval is not None and pending.approval.unmet_previews for pending in later):
        _check_base_previews(done, later)


def _get_changes(pending: PendingCall) -> ChangeSet | None:
    if pending.output is None:
        return pending.change_set
    changes: object = getattr(pending.output, "changes", None)  # a custom tool may have returned anything
    return changes if isinstance(changes, ChangeSet) else None


def _rebase_bound_files(changes: ChangeSet, later: list[PendingCall]) -> None:
    after = {change.path: change.after for change in changes.changes}
    for pending in later:
        if pending.approval is not None:
            bound_files = tuple(
                msgspec.structs.replace(file, hash=after.get(file.real or "", file.hash))
                for file in pending.approval.bound_files
            )
            pending.approval = msgspec.structs.replace(pending.approval, bound_files=bound_files)


def _check_base_previews(done: PendingCall, later: list[PendingCall]) -> None:
    """A preview that builds on another one is committed only after that one. Its output is available anyway."""
    if _get_changes(done) is not None:
        met = {done.preview_id or done.call.tool_call_id}
        for pending in later:
            if (approval := pending.approval) is not None:
                pending.approval = msgspec.structs.replace(approval, unmet_previews=approval.unmet_previews - met)
    approval = later[0].approval
    if approval is not None and approval.unmet_previews and approval.answer and approval.answer.kind != "output":
        reason = "that change was dropped or is different. Nothing was kept. Call again."
        message = f"This preview includes the change of an earlier call of its batch, and {reason}"
        later[0].fail(ToolError("CONFLICT", message))


# Read-only calls in parallel threads. Their results are recorded in the order of the calls.


def _run_ahead(session: Session, batch: list[PendingCall], known: Container[str], budget: int) -> None:
    """Runs the leading read-only calls in parallel, if there are several. Their results are recorded later."""
    read_only = [*takewhile(lambda pending: _is_parallel(pending) and pending.call.tool_call_id not in known, batch)]
    group = prepare_parallel(session, read_only) if len(read_only) > 1 else []
    try:
        if group:
            _run_in_threads(session, group, budget)
    except BaseException:
        for pending in group:
            release_call(session, pending)
        raise


def _is_parallel(pending: PendingCall) -> bool:
    """Whether a call may run in parallel: it has no effects, or is a command that policy has proven to have none."""
    spec, command = pending.tool.spec, pending.facts.command
    if pending.error is not None or pending.ran_ahead:
        return False
    if command is None or pending.request is not None:
        return not spec.side_effects and spec.category != "mcp"
    from handrail.policy.parse import parse_fact  # noqa: PLC0415  tables that only commands need

    parsed = parse_fact(command)  # a command of the session's network may reach its background processes
    return command.tier > 0 and not command.outlives and parsed.is_read_only and not parsed.reads_loopback


def _shorten_result(session: Session, pending: PendingCall, budget: int) -> None:
    """Makes a result that would have been shorter in its turn again. The call itself runs again unless it is a custom
    tool: nothing proves that this would do no harm.
    """
    result = pending.result
    if budget >= pending.budget or result is None or not (result.meta.truncated or len(result.content) > budget):
        return
    pending.budget = budget
    if pending.tool.spec.category == "custom" and pending.output is not None:
        pending.result = None
        take_steps(session, pending, (build_result,))
    else:
        release_call(session, pending)
        pending.output = pending.result = pending.error = pending.parallel_stop = None
        pending.ran_ahead = False


def _run_in_threads(session: Session, batch: list[PendingCall], budget: int) -> None:
    """Runs calls in threads. An interrupt stops them and waits for them."""
    stop, failures = Event(), list[Exception]()
    for pending in batch:
        pending.budget, pending.parallel_stop = budget, stop
    todo = iter(batch)  # the iterator of a list gives each call to one thread only
    arguments = (session, todo, stop, failures)
    threads = [
        Thread(target=_run_until_stopped, args=arguments) for _ in range(min(len(batch), MAX_PARALLEL_CALLS) - 1)
    ]
    try:
        with suppress(RuntimeError):  # no more threads can be started: fewer do the work
            for thread in threads:
                thread.start()
        _run_until_stopped(*arguments)
        _join(threads)
    except BaseException:
        stop.set()
        _join(threads)
        raise
    if failures:
        raise failures[0]


def _run_until_stopped(session: Session, todo: Iterator[PendingCall], stop: Event, failures: list[Exception]) -> None:
    for pending in todo:
        if stop.is_set():
            return
        try:
            take_steps(session, pending, select_steps(session, pending))
            pending.ran_ahead = True
        except Exception as error:  # of the store: the waiting thread raises it
            failures.append(error)
        finally:
            session.workspace.drop_cached()


def _join(threads: list[Thread]) -> None:
    for thread in threads:
        if thread.ident is not None:
            thread.join()


def _load_park():  # the type is that of the module
    from handrail.runtime import park  # noqa: PLC0415  most batches wait for nobody

    return park
