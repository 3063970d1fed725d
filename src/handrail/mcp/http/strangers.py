"""Bounds for connections that have not shown the token. Any user of this machine, and any page in a browser, can open
some and say nothing. They must not take the descriptors or the time of clients that have the token."""

import asyncio
import select
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from handrail.mcp.http.guard import App, Receive, Scope, Send

MAX_UNAUTHENTICATED_CONNECTIONS = 384
"""At the same time. Further connections wait in the queue of the system. Often a process has 1,024 descriptors."""
AUTHENTICATION_SECONDS = 10.0
"""To show the token."""
CROWDED_SECONDS = 1.0
"""To show it while another connection waits for the place."""
_KEY = "handrail.connection"
_RETRY_SECONDS = 0.05


class UnauthenticatedLimit:
    """The connections of one server."""

    def __init__(
        self,
        most: int = MAX_UNAUTHENTICATED_CONNECTIONS,
        seconds: float = AUTHENTICATION_SECONDS,
        crowded_seconds: float = CROWDED_SECONDS,
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._crowded_seconds = crowded_seconds
        self._timers: dict[HttpConnection, asyncio.TimerHandle] = {}

    def connection(self, given: dict[str, Any]) -> "HttpConnection":
        """What speaks HTTP on a new connection. `given`: what uvicorn gives one."""
        one = HttpConnection(self, given)
        self._timers[one] = one.loop.call_later(self._seconds, self._expire, one)
        return one

    def make_room(self) -> bool:
        """Whether one more connection may come. The oldest that had its time and says nothing goes for it."""
        if len(self._timers) < self._most:
            return True
        for one in self._timers:
            if one.loop.time() - one.arrived < self._crowded_seconds:
                return False
            if one.is_silent():
                self._dismiss(one)
                return True
        return False

    def forget(self, one: "HttpConnection") -> None:
        """It is a stranger's no more: it is known, or gone."""
        if (timer := self._timers.pop(one, None)) is not None:
            timer.cancel()

    def wrap_authenticated(self, app: App) -> App:
        """Who comes as far as this has shown the token."""

        async def known(scope: Scope, receive: Receive, send: Send) -> None:
            self.forget(scope["state"][_KEY])
            await app(scope, receive, send)

        return known

    def _expire(self, one: "HttpConnection") -> None:
        if one.is_silent():
            self._dismiss(one)
        else:  # the server itself was held up: look again when it has read what came
            self._timers[one] = one.loop.call_later(_RETRY_SECONDS, self._expire, one)

    def _dismiss(self, one: "HttpConnection") -> None:
        self.forget(one)
        one.transport.abort()


class HttpConnection(H11Protocol):
    """HTTP on one connection."""

    def __init__(self, strangers: UnauthenticatedLimit, given: dict[str, Any]) -> None:
        super().__init__(**given)
        self.app_state = {**self.app_state, _KEY: self}
        self.arrived = self.loop.time()
        self.beginning: asyncio.Task[None] | None = None
        self._strangers = strangers

    def is_silent(self) -> bool:
        """Whether the server read all that came, and is not about to answer it."""
        if not self.transport or (self.cycle and not self.cycle.response_complete):
            return False
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return self.transport.is_closing() or not poll.poll(0)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends, however."""
        self._strangers.forget(self)
        super().connection_lost(exc)


class ConnectionAcceptor:
    """Accepts connections while there is room. The others wait in the queue of the system, and none of them is lost."""

    def __init__(self, listening: socket.socket, strangers: UnauthenticatedLimit, given: dict[str, Any]) -> None:
        self._listening = listening
        self._strangers = strangers
        self._given = given
        self._loop = asyncio.get_running_loop()
        listening.setblocking(False)
        self._open()

    def close(self) -> None:
        """Accepts no more."""
        self._retry.cancel()
        self._loop.remove_reader(self._listening)

    def _open(self, seconds: float = 0) -> None:
        self._retry = self._loop.call_later(seconds, self._loop.add_reader, self._listening, self._accept)

    def _accept(self) -> None:
        while self._strangers.make_room():
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor is left, or no memory
                break
            one = self._strangers.connection(self._given)
            one.beginning = self._loop.create_task(self._begin(one, accepted))
        self._loop.remove_reader(self._listening)
        self._open(_RETRY_SECONDS)

    async def _begin(self, one: HttpConnection, accepted: socket.socket) -> None:
        try:
            accepted.setblocking(False)
            await self._loop.connect_accepted_socket(lambda: one, accepted)
        except OSError:
            self._strangers.forget(one)
            accepted.close()
