"""Serves until it is told to stop."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator

import uvicorn

from handrail.mcp.http.address import Address
from handrail.mcp.http.application import build_session_manager
from handrail.mcp.http.defects import DefectReporter
from handrail.mcp.http.guard import App, Guard, Receive, Scope, Send
from handrail.mcp.http.handlers import HttpHandlers
from handrail.mcp.http.ids import RequestIds
from handrail.mcp.http.rails import SessionPool
from handrail.mcp.http.replies import ReplyTracker
from handrail.mcp.http.sessions import SessionLimit
from handrail.mcp.http.strangers import ConnectionAcceptor, UnauthenticatedLimit
from handrail.mcp.http.threads import CallThreads

_GOODBYE_SECONDS = 2
"""Seconds for calls to be answered, and then for connections to close, when the server ends."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_JOIN_SECONDS = 5.0
"""Seconds that threads may take to end what was cancelled."""


def serve(listening: socket.socket, token: str, rails: SessionPool, note: Callable[[str], None], at_once: int) -> None:
    """Serves all clients that come to a socket, until a signal says that it is enough; closes what was opened.
    `note` takes lines for a person. `at_once`: what a second signal exits with."""
    _be_quiet()
    threads = CallThreads()
    serving = _serve(listening, token, rails, threads, DefectReporter(note), at_once)
    try:
        asyncio.run(serving)
    finally:
        rails.stop()
        if threads.end(_JOIN_SECONDS):  # else something does not end: whoever opens the sessions next settles it
            rails.close()


async def _serve(
    listening: socket.socket,
    token: str,
    rails: SessionPool,
    threads: CallThreads,
    defects: DefectReporter,
    at_once: int,
) -> None:
    ids = RequestIds()
    handlers = HttpHandlers(rails, threads)
    manager = build_session_manager(handlers, ids, defects)
    posts = _Posts(ReplyTracker(SessionLimit(ids.wrap_app(manager.handle_request))))
    names, strangers = Address(*listening.getsockname()[:2]).names(), UnauthenticatedLimit()
    config = uvicorn.Config(
        Guard(strangers.wrap_authenticated(posts), names, token),
        http="h11",
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GOODBYE_SECONDS,
    )
    async with contextlib.AsyncExitStack() as sessions:
        await sessions.enter_async_context(manager.run())

        async def end() -> None:
            rails.stop()
            handlers.listening.close()
            await posts.answered(_GOODBYE_SECONDS)
            threads.leave()
            await sessions.aclose()

        await _Listener(config, strangers, end, at_once).serve([listening])


class _Posts:
    """Knows of the requests that wait for an answer. Those that only listen are no such requests."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._waiting: set[object] = set()
        self._none = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        one = object()
        self._waiting.add(one)
        self._none.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._waiting.discard(one)
            if not self._waiting:
                self._none.set()

    async def answered(self, seconds: float) -> None:
        """Waits until no request waits any more, but not for ever."""
        if self._waiting:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._none.wait(), seconds)


class _Listener(uvicorn.Server):
    """Ends what runs before it waits for connections to close, and leaves the process alone afterwards."""

    def __init__(
        self, config: uvicorn.Config, strangers: UnauthenticatedLimit, end: Callable[[], Awaitable[None]], at_once: int
    ) -> None:
        super().__init__(config)
        self._strangers = strangers
        self._entrances: list[ConnectionAcceptor] = []
        self._end = end
        self._at_once = at_once

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """The first signal ends it with a goodbye, another one without. Whoever started it may have had SIGHUP
        ignored, so that it stays when the terminal is closed."""

        # sse_starlette cuts all streams half a second after a signal, answered or not, where uvicorn's own method takes
        # the signal, or where it finds a server behind the handler.
        def end(*_: object) -> None:
            if self.should_exit:
                os._exit(self._at_once)  # whatever still hangs: the journal has what was done
            self.should_exit = True

        numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, end) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts connections by itself: asyncio's own server accepts all of them, whether there is room or not."""
        await super().startup(sockets=[])
        given = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        self._entrances = [ConnectionAcceptor(one, self._strangers, given) for one in sockets or ()]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Calls and sessions end first, which is what connections wait for."""
        await self._end()
        for one in self._entrances:
            one.close()
        await super().shutdown(sockets)


def _be_quiet() -> None:
    """Nothing of a request is printed: it may hold a token, or a file."""
    for name in ("uvicorn", "mcp", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], False
