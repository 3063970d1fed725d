"""Serves until it is told to stop."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Generator

import uvicorn

from handrail.mcp.http.address import Address
from handrail.mcp.http.application import manager_of
from handrail.mcp.http.guard import Guard
from handrail.mcp.http.handlers import Handlers
from handrail.mcp.http.rails import Rails
from handrail.mcp.http.threads import Threads

_GOODBYE = 2
"""Seconds for calls to end, and then for connections to close, when the server ends."""
_FLUSH = 0.1
"""Seconds for the answers of calls that were ended."""


def serve(listening: socket.socket, token: str, rails: Rails) -> None:
    """Serves all clients that come to a socket, until a signal says that it is enough; closes what was opened."""
    _be_quiet()
    threads = Threads()
    try:
        asyncio.run(_serve(listening, token, rails, threads))
    finally:
        rails.close()
        threads.close()


async def _serve(listening: socket.socket, token: str, rails: Rails, threads: Threads) -> None:
    manager = manager_of(Handlers(rails, threads))
    names = Address(*listening.getsockname()[:2]).names()
    config = uvicorn.Config(
        Guard(manager.handle_request, names, token),
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GOODBYE,
    )
    async with contextlib.AsyncExitStack() as sessions:
        await sessions.enter_async_context(manager.run())

        async def end() -> None:
            rails.stop()
            await threads.settled(_GOODBYE)
            await asyncio.sleep(_FLUSH)
            await sessions.aclose()

        await _Listener(config, end).serve([listening])


class _Listener(uvicorn.Server):
    """Ends what runs before it waits for connections to close, and leaves the process alone afterwards."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._end = end

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """The first signal ends it with a goodbye, another one without."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Calls and sessions end first, which is what connections wait for."""
        await self._end()
        await super().shutdown(sockets)


def _be_quiet() -> None:
    """Nothing of a request is printed: it may hold a token, or a file."""
    for name in ("uvicorn", "mcp", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], False
