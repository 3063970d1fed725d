"""Accepts HTTP connections, with bounds for those that have not sent the token.

Any user of this machine can open connections without a word, and so can any page in a browser. They must not take the
descriptors or the time of clients that have the token.
"""

import asyncio
import logging
import os
import select
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from handrail.mcp.http.guard import App, Receive, Scope, Send

MAX_UNAUTHENTICATED_CONNECTIONS = 384
"""Further connections wait in the queue of the system. Often a process has 1,024 descriptors."""
AUTHENTICATION_SECONDS = 10.0
"""The time to send the token."""
CROWDED_SECONDS = 1.0
"""The time to send it while others wait."""
UNREAD_SECONDS = 30
"""How long a client may read nothing of what was sent to it."""
GOODBYE_SECONDS = 2
"""How long requests may be answered when the server ends, and then how long connections may take to close."""
_KEY = "handrail.connection"
_RETRY_SECONDS = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def build_config(app: App, **options: Any) -> uvicorn.Config:
    """The configuration of a `Listener`: no log, and no header that tells what the server is."""
    return uvicorn.Config(
        cast("Any", app),
        http="h11",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
        **options,
    )


def silence_logs() -> None:
    """Disables the logs of the libraries, which may hold a token or a file."""
    for name in ("uvicorn", "mcp", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], False


class UnauthenticatedLimit:
    """The connections of one server that have not sent the token."""

    def __init__(
        self,
        max_connections: int = MAX_UNAUTHENTICATED_CONNECTIONS,
        seconds: float = AUTHENTICATION_SECONDS,
        crowded_seconds: float = CROWDED_SECONDS,
    ) -> None:
        self._max_connections = max_connections
        self._seconds = seconds
        self._crowded_seconds = crowded_seconds
        self._timers: dict[HttpConnection, asyncio.TimerHandle] = {}

    def add(self, options: dict[str, Any]) -> "HttpConnection":
        """Makes a connection with the options of uvicorn."""
        one = HttpConnection(self, options)
        self._timers[one] = one.loop.call_later(self._seconds, self._expire, one)
        return one

    def make_room(self) -> bool:
        """Whether one more connection may come. The oldest silent one is closed for it."""
        if len(self._timers) < self._max_connections:
            return True
        for one in self._timers:
            if one.loop.time() - one.arrived < self._crowded_seconds:
                return False
            if one.is_silent():
                self._dismiss(one)
                return True
        return False

    def forget(self, one: "HttpConnection") -> None:
        """It has sent the token, or is gone."""
        if (timer := self._timers.pop(one, None)) is not None:
            timer.cancel()

    def wrap_authenticated(self, app: App) -> App:
        """The application behind the guard, so its requests have the token."""

        async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
            self.admit(scope)
            await app(scope, receive, send)

        return pass_on

    def admit(self, scope: Scope) -> None:
        """The connection of this request has sent the token."""
        self.forget(scope["state"][_KEY])

    def _expire(self, one: "HttpConnection") -> None:
        if one.is_silent():
            self._dismiss(one)
        else:  # the server itself was busy: check again after it has read
            self._timers[one] = one.loop.call_later(_RETRY_SECONDS, self._expire, one)

    def _dismiss(self, one: "HttpConnection") -> None:
        self.forget(one)
        one.transport.abort()


class HttpConnection(H11Protocol):
    """One connection of uvicorn."""

    def __init__(self, limit: UnauthenticatedLimit, options: dict[str, Any]) -> None:
        super().__init__(**options)
        self.app_state = {**self.app_state, _KEY: self}
        self.arrived = self.loop.time()
        self.beginning: asyncio.Task[None] | None = None
        self._limit = limit

    def is_silent(self) -> bool:
        """Whether the server has read all input and owes no answer."""
        if not self.transport or (self.cycle and not self.cycle.response_complete):
            return False
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return self.transport.is_closing() or not poll.poll(0)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Overrides uvicorn: from here on another protocol has the connection, and refuses it without the token."""
        self._limit.forget(self)
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Overrides uvicorn."""
        self._limit.forget(self)
        super().connection_lost(exc)


class ConnectionAcceptor:
    """Accepts connections while there is room. asyncio's own server would accept all of them."""

    def __init__(
        self,
        listening: socket.socket,
        limit: UnauthenticatedLimit,
        options: dict[str, Any],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listening = listening
        self._limit = limit
        self._options = options
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        listening.setblocking(False)
        self._open()

    def close(self) -> None:
        self._retry.cancel()
        self._loop.remove_reader(self._listening)

    def _open(self, seconds: float = 0) -> None:
        self._retry = self._loop.call_later(seconds, self._loop.add_reader, self._listening, self._accept)

    def _accept(self) -> None:
        while self._limit.make_room():
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # out of descriptors or memory
                break
            one = self._limit.add(self._options)
            one.beginning = self._loop.create_task(self._begin(one, accepted))
        self._loop.remove_reader(self._listening)
        self._open(_RETRY_SECONDS)

    async def _begin(self, one: HttpConnection, accepted: socket.socket) -> None:
        try:
            accepted.setblocking(False)
            if sys.platform == "linux":  # asyncio would keep what it has to write for ever
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_SECONDS * 1_000)
            seconds = AUTHENTICATION_SECONDS if self._tls else None
            await self._loop.connect_accepted_socket(
                lambda: one, accepted, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except OSError:
            self._limit.forget(one)
            accepted.close()


class Listener(uvicorn.Server):
    """Serves until a signal. Ends all calls before it waits for connections to close."""

    def __init__(
        self, config: uvicorn.Config, limit: UnauthenticatedLimit, end: Callable[[], Awaitable[None]], exit_code: int
    ) -> None:
        """A second signal exits with `exit_code`."""
        super().__init__(config)
        self._limit = limit
        self._acceptors: list[ConnectionAcceptor] = []
        self._end = end
        self._exit_code = exit_code

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leaves an ignored SIGHUP ignored, so that the server outlives its terminal under nohup.

        uvicorn's own method must not be used: sse_starlette looks for it, and then cuts all streams half a second after
        a signal, answered or not.
        """

        def end(*_: object) -> None:
            if self.should_exit:
                os._exit(self._exit_code)  # the journal has every call
            self.should_exit = True

        numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, end) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts connections by our own acceptors."""
        await super().startup(sockets=[])
        options = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        self._acceptors = [ConnectionAcceptor(one, self._limit, options, self.config.ssl) for one in sockets or ()]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends calls and sessions first: connections wait for them."""
        await self._end()
        for acceptor in self._acceptors:
            acceptor.close()
        await super().shutdown(sockets)
