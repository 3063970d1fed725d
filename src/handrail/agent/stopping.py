"""Cancel: from any thread, at any moment; what runs is ended, and what is open is closed before anybody hears of it."""

from collections.abc import Awaitable, Callable, Coroutine
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from handrail.async_rail import AsyncHandrail

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

Result = TypeVar("Result")


class TurnCanceller:
    """Watches over one turn at a time."""

    def __init__(self, rail: AsyncHandrail) -> None:
        self._rail = rail
        self._lock = RLock()  # a signal's handler may cancel while its thread holds it
        self._running: tuple[AbstractEventLoop, Task[Any]] | None = None
        self._asked = self._ours = self._settling = False

    def cancel(self) -> bool:
        """Ends the turn that is at work; whether there was one."""
        with self._lock:
            if self._running is None:
                return False
            self._rail.cancel()  # at once: a command is ended even while the event loop is busy
            if not self._asked:
                self._asked = True
                self._running[0].call_soon_threadsafe(self._cancel_task, self._running)
            return True

    def _cancel_task(self, asked: "tuple[AbstractEventLoop, Task[Any]]") -> None:
        """Unless the turn has ended meanwhile, and another one is at work."""
        if self._running is asked and not self._settling:
            self._ours = True
            asked[1].cancel()

    async def run_cancellable(
        self, work: Coroutine[Any, Any, Result], settle: Callable[[], Coroutine[Any, Any, Result]]
    ) -> Result:
        """What comes of the work; where it is cancelled, what comes of `settle`. A cancellation that is not ours goes
        on to whoever wanted it, once all is settled."""
        from asyncio import CancelledError  # noqa: PLC0415  who is here has it

        task = self._begin()
        refusing = self._rail.conversation.cancelled  # somebody else said so, and has to take it back
        try:
            return await work
        except CancelledError:
            self._settling = True
            settled = await finish_despite_cancel(settle())
            if self._ours and task.uncancel() == 0:
                return settled
            raise
        finally:
            with self._lock:
                self._running = None
                if not refusing and (self._asked or self._settling):
                    self._rail.uncancel()

    def _begin(self) -> "Task[Any]":
        import asyncio  # noqa: PLC0415  as above

        task = asyncio.current_task()
        if task is None:
            raise AssertionError("a coroutine runs in a task")
        self._asked = self._ours = self._settling = False
        self._running = asyncio.get_running_loop(), task
        return task


async def finish_despite_cancel(work: Awaitable[Result], stop: Callable[[], object] = lambda: None) -> Result:
    """Waits for work that must not be left alone. Cancelled meanwhile, it is told to stop, and waited for all the
    same."""
    import asyncio  # noqa: PLC0415  as above

    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            stop()
    if cancelled is not None:
        task.exception()  # looked at, so that nobody reports it as forgotten
        raise cancelled
    return task.result()
