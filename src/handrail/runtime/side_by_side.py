"""Calls of one batch that only look: side by side, in threads. What they come to is the same as one after the other,
and it is written down in the order of the calls."""

from collections.abc import Container, Iterator
from contextlib import suppress
from itertools import takewhile
from threading import Event, Thread

from handrail.runtime.pipeline import RUNNING, take_steps
from handrail.runtime.session import PendingCall, Session

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
