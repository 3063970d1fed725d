"""An event loop in a thread of its own, for coroutines that serve programs."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from handrail.protocol.errors import ToolError

Result = TypeVar("Result")
_POLL_SECONDS = 0.05
"""Pause between two looks whether a call was cancelled."""
_JOIN_SECONDS = 10.0
_MAX_WAITING = 64
"""Threads in which programs start or end. So many that none waits for another."""


class EventLoop:
    """Any thread may use it, except its own. The thread starts with the first coroutine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._is_closed = False

    def submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Runs a coroutine. UNAVAILABLE after `close`."""
        with self._lock:
            if self._is_closed:
                work.close()
                raise ToolError("UNAVAILABLE", "The session is closed.")
            if self._thread is None:
                main = self._wait_for_close()
                self._thread = threading.Thread(target=asyncio.run, args=(main,), name="servers", daemon=True)
                self._thread.start()
        self._started.wait()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result], cancelled: Callable[[], bool] | None = None) -> Result:
        """The result of a coroutine, which limits its time itself. CANCELLED if the call was cancelled."""
        future = self.submit(work)
        while True:
            try:
                return future.result(_POLL_SECONDS if cancelled else None)
            except TimeoutError:
                if future.done():
                    return future.result()
                if cancelled is not None and cancelled():
                    future.cancel()
                    raise ToolError("CANCELLED", "The call was cancelled. Nothing was changed.") from None
            except CancelledError:
                raise ToolError("UNAVAILABLE", "The session is closed.") from None

    def close(self) -> None:
        """Cancels what still runs, and ends the thread. Waits for a limited time. Can be repeated."""
        with self._lock:
            thread, self._is_closed = None if self._is_closed else self._thread, True
        if thread is not None:
            self._started.wait()
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join(_JOIN_SECONDS)

    async def _wait_for_close(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_default_executor(ThreadPoolExecutor(_MAX_WAITING, "servers-waiting"))
        self._started.set()
        await self._over.wait()
