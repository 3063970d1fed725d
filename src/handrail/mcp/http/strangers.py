"""Connections of nobody knows whom. Any user of this machine, and any page in a browser, can open some and say nothing;
those that have not shown the token are few, and for a short time, so that they take nothing from who has."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from handrail.mcp.http.guard import App, Receive, Scope, Send

MOST = 64
"""At the same time. One more, and the oldest goes: whoever has the token shows it at once."""
SECONDS = 10.0
"""To show it."""
_KEY = "handrail.connection"


class Strangers:
    """The connections of one server."""

    def __init__(self, most: int = MOST, seconds: float = SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._timers: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    def connection(self, **given: Any) -> "Connection":
        """For who listens: what speaks HTTP on a new connection."""
        return Connection(self, given)

    def come(self, one: asyncio.Transport) -> None:
        """One more; it may be one too many."""
        self._timers[one] = asyncio.get_running_loop().call_later(self._seconds, one.abort)
        if len(self._timers) > self._most:
            oldest = next(iter(self._timers))
            self.forget(oldest)
            oldest.abort()

    def forget(self, one: asyncio.Transport) -> None:
        """It is a stranger's no more: it is known, or gone."""
        if (timer := self._timers.pop(one, None)) is not None:
            timer.cancel()

    def until_here(self, app: App) -> App:
        """Who comes as far as this has shown the token."""

        async def known(scope: Scope, receive: Receive, send: Send) -> None:
            self.forget(scope["state"][_KEY])
            await app(scope, receive, send)

        return known


class Connection(H11Protocol):
    """HTTP on one connection."""

    def __init__(self, strangers: Strangers, given: dict[str, Any]) -> None:
        super().__init__(**given)
        self._strangers = strangers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, _KEY: transport}
        self._strangers.come(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends, however."""
        self._strangers.forget(self.transport)
        super().connection_lost(exc)
