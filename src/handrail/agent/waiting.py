"""A turn for a program without an event loop: the loop has its own thread, and the program's thread runs the calls.

So a call behaves as it does by hand: the person at the terminal is asked, and Ctrl-C ends it.
"""

import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, TypeVar

from handrail.async_rail import AsyncHandrail

Result = TypeVar("Result")


class _InterruptedError(Exception):
    """What the loop sees of a Ctrl-C: the real one would end its thread."""


class _Here(Executor):
    """A pool whose only thread is the one that serves it."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._cancel: Callable[[], object] = lambda: None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)
            except BaseException:
                self._cancel()  # before anybody hears of it, or the turn would go on
                future.set_exception(_InterruptedError())
                raise

        self._work.put(work)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002  as Executor has it
        self._work.put(None)

    def serve(self, cancel: Callable[[], object]) -> None:
        """Works until it is shut down. A Ctrl-C ends the turn first, and then the program."""
        self._cancel = cancel
        interrupted: KeyboardInterrupt | None = None
        while True:
            try:
                if (work := self._work.get()) is None:
                    break
                work()
            except KeyboardInterrupt as error:
                interrupted = error
                cancel()
        if interrupted is not None:
            raise interrupted


def wait_for(
    rail: AsyncHandrail, work: Callable[[], Coroutine[Any, Any, Result]], cancel: Callable[[], object]
) -> Result:
    """What comes of the work, which runs in an event loop of its own; `cancel` ends it."""
    here, outcome = _Here(), Future[Result]()

    def run() -> None:
        import asyncio  # noqa: PLC0415  heavy

        try:
            outcome.set_result(asyncio.run(work()))
        except BaseException as error:  # whatever it is, it is for whoever waits
            outcome.set_exception(error)
        finally:
            here.shutdown()

    with rail.working_in(here):
        thread = threading.Thread(target=run, name="handrail-agent")
        thread.start()
        try:
            here.serve(cancel)
        finally:
            thread.join()
    return outcome.result()
