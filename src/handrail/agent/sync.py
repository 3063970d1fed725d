"""Runs a turn for a program without an event loop.

The loop has a thread of its own, and the caller's thread runs the calls. So prompts at the terminal and Ctrl-C work as
without a model."""

import asyncio
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
    """Stands for a Ctrl-C in the event loop: KeyboardInterrupt would end its thread."""


class _CallerThreadTask:
    """Work for the caller's thread. It runs once, also if it is interrupted."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._started = False
        self.future: Future[Any] = Future()

    def run(self) -> None:
        """Runs it. If it was interrupted before, it fails instead."""
        if self.future.done():
            return
        if self._started:
            self.future.set_exception(_InterruptedError())
            return
        self._started = True
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self._work())
        except Exception as error:
            self.future.set_exception(error)


class _CallerThreadExecutor(Executor):
    """An executor whose only thread is the one that calls `serve`."""

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
        """Runs work until it is shut down. An exception that ends the program, mostly a Ctrl-C, cancels the turn first
        and is raised at the end."""
        ending: BaseException | None = None
        cancelled = False
        while True:
            try:
                if ending is not None and not cancelled:
                    with suppress(Exception):
                        cancel()  # before the loop sees the interrupt, or the turn would go on
                    cancelled = True
                if not self._serve_next():
                    break
            except BaseException as error:  # raised below: the loop still has to end
                ending = error
        if ending is not None:
            raise ending

    def _serve_next(self) -> bool:
        """Runs the next piece of work, and removes it afterwards: an interrupt in between loses nothing."""
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
    """The result of the work, which runs in an event loop of its own. `cancel` ends it."""
    executor, outcome = _CallerThreadExecutor(), Future[Result]()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(work()))
        except BaseException as error:  # raised in the caller's thread
            outcome.set_exception(error)
        finally:
            executor.shutdown()

    with rail.working_in(executor):
        thread = threading.Thread(target=run, name="handrail-agent")
        thread.start()
        try:
            executor.serve(cancel)
        finally:
            thread.join()
    return outcome.result()
