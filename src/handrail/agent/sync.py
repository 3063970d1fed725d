"""A turn for a program without an event loop: the loop has its own thread, and the program's thread runs the calls.

So a call behaves as it does by hand: the person at the terminal is asked, and Ctrl-C ends it."""

import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from handrail.async_api import AsyncHandrail

Result = TypeVar("Result")


class _InterruptedError(Exception):
    """What the loop sees of a Ctrl-C: the real one would end its thread."""


class _CallerThreadTask:
    """Something to be done once, whatever it is interrupted by."""

    def __init__(self, do: Callable[[], Any]) -> None:
        self._do = do
        self._begun = False
        self.future: Future[Any] = Future()

    def run(self) -> None:
        """Does it, or gives it up where it was begun before."""
        if self.future.done():
            return
        if self._begun:
            self.future.set_exception(_InterruptedError())
            return
        self._begun = True
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self._do())
        except Exception as error:
            self.future.set_exception(error)


class _Here(Executor):
    """A pool whose only thread is the one that serves it."""

    def __init__(self) -> None:
        self._todo: deque[_CallerThreadTask | None] = deque()
        self._more: SimpleQueue[None] = SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        work = _CallerThreadTask(lambda: fn(*args, **kwargs))
        self._put(work)
        return work.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002  as Executor has it
        self._put(None)

    def _put(self, work: _CallerThreadTask | None) -> None:
        self._todo.append(work)
        self._more.put(None)

    def serve(self, cancel: Callable[[], object]) -> None:
        """Works until it is shut down. What ends the program, mostly a Ctrl-C, ends the turn first; another one in the
        middle of that does as well."""
        ending: BaseException | None = None
        cancelled = False
        while True:
            try:
                if ending is not None and not cancelled:
                    with suppress(Exception):
                        cancel()  # before the loop hears of it, or the turn would go on
                    cancelled = True
                if not self._serve_next():
                    break
            except BaseException as error:  # whoever waits for the work has to hear of it, or would wait for ever
                ending = error
        if ending is not None:
            raise ending

    def _serve_next(self) -> bool:
        """Nothing is taken away before it is done, so that an interrupt in between loses nothing."""
        if not self._todo:
            self._more.get()
            return True
        work = self._todo[0]
        if work is not None:
            work.run()
            self._todo.popleft()
        return work is not None


def run_in_thread(
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
