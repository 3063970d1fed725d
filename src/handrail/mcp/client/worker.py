"""One thread with an event loop, for all servers of a session."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from handrail.settings.mcp_servers import MAX_SERVERS

Result = TypeVar("Result")
_JOIN_SECONDS = 10.0


class Worker:
    """Begins with the first thing that it is given to do. Any thread may give it something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def do(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Has it done beside everything else; what it gives, later. RuntimeError where the worker is closed."""
        with self._lock:
            if self._closed:
                work.close()
                raise RuntimeError("the worker is closed")
            return asyncio.run_coroutine_threadsafe(work, self._running())

    def close(self) -> None:
        """Cancels what is still being done and waits for its end, within bounds. Can be repeated."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_JOIN_SECONDS)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="mcp-client", daemon=True)
            self._thread.start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    # So many that no server waits for the start or the end of another.
    loop.set_default_executor(ThreadPoolExecutor(MAX_SERVERS, "mcp-waiting"))
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
