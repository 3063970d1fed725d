"""Calls of one batch that only look: side by side, in threads. What they come to is the same as one after the other,
and it is written down in the order of the calls."""

from collections.abc import Container, Iterator
from contextlib import suppress
from itertools import takewhile
from threading import Event, Thread

from handrail.runtime.pipeline import RUNNING, take_steps
from handrail.runtime.session import Flight, Session

MOST = 8
"""Threads of one batch, the caller's own among them."""


def run_ahead(session: Session, flights: list[Flight], known: Container[str], budget: int) -> None:
    """Runs the calls at the beginning that only look, where there are several, up to their results: nothing is written
    down yet. `known`: those that have a result."""
    looking = [*takewhile(lambda flight: _only_looks(flight) and flight.call.tool_call_id not in known, flights)]
    if len(looking) > 1:
        _run_beside(session, looking, budget)


def has_run(flight: Flight, budget: int) -> bool:
    """Whether a call has run ahead, and came to what it would have come to in its turn, with this budget. If not, it
    has only looked, and is to be run."""
    if flight.stopped is None:
        return False
    result = flight.result
    whole = result is None or not (result.meta.truncated or len(result.content) > budget)
    if budget < flight.budget and not whole:
        flight.output = flight.result = flight.error = flight.stopped = None
    return flight.stopped is not None


def _only_looks(flight: Flight) -> bool:
    """A custom tool may rely on being called by one thread at a time."""
    spec = flight.tool.spec
    return flight.error is None and flight.stopped is None and not spec.side_effects and spec.category == "builtin"


def _run_beside(session: Session, flights: list[Flight], budget: int) -> None:
    """An interrupt waits until all of them have stopped, and they are told to."""
    stop, failures = Event(), list[Exception]()
    for flight in flights:
        flight.budget, flight.stopped = budget, stop
    todo = iter(flights)
    threads = [Thread(target=_work, args=(session, todo, failures)) for _ in range(min(len(flights), MOST) - 1)]
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


def _work(session: Session, todo: Iterator[Flight], failures: list[Exception]) -> None:
    """Takes call after call; the iterator of a list gives each to one thread only."""
    for flight in todo:
        if flight.stopped is None or flight.stopped.is_set():
            return
        try:
            take_steps(session, flight, RUNNING)
        except Exception as error:  # of the store: whoever waits has to hear of it
            failures.append(error)
        finally:
            session.workspace.let_go()


def _join(threads: list[Thread]) -> None:
    for thread in threads:
        if thread.ident is not None:
            thread.join()
