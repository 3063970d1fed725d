"""Tells the client what happens while it waits: how far its calls are, and what a person should know."""

import threading
import time
from collections.abc import Callable
from typing import Any

from handrail.mcp.caller import DEFAULT_LEVEL, LEVEL_KEY, LEVELS, Level
from handrail.mcp.stdio.connection import ClientRequest, StdioConnection
from handrail.protocol.jsonrpc import RequestId

_PAUSE_SECONDS = 0.1
"""Seconds between two notifications about one call. What comes sooner is left out: the next one says more."""
_MAX_LINE_CHARS = 500
"""Characters of a line that is told."""


class ProgressSender:
    """What one request is told of how far it is: numbers that only grow, each with a line of text."""

    def __init__(self, send: Callable[[dict[str, Any]], None], token: RequestId) -> None:
        self._send, self._token = send, token
        self._lock = threading.Lock()
        self._number = 0
        self._next = 0.0

    def tell(self, message: str) -> None:
        """Sends it, unless one was sent a moment ago."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                return
            self._number, self._next = self._number + 1, now + _PAUSE_SECONDS
            params = {"progressToken": self._token, "progress": self._number, "message": message[:_MAX_LINE_CHARS]}
            self._send({"method": "notifications/progress", "params": params})


class Notifier:
    """Tells those who asked for it."""

    def __init__(self, connection: StdioConnection) -> None:
        self._connection = connection
        self._level = LEVELS.index(DEFAULT_LEVEL)
        self._calls: dict[str, ClientRequest] = {}
        """Those whose client wants to hear of them, by what the call is called here."""
        self._names: dict[ClientRequest, list[str]] = {}
        """What each of them is called: one that finds an earlier call waiting has that one's name too."""

    def set_level(self, level: Level) -> None:
        """From which level on a client with a handshake is told."""
        self._level = LEVELS.index(level)

    def follow(self, exchange: ClientRequest, call_id: str) -> None:
        """Tells of this call from here on, if its client asked for that."""
        meta: dict[str, Any] | None = exchange.params.get("_meta")
        token = meta.get("progressToken") if meta else None
        if token is None and (not meta or _level_of(exchange) is None):
            return
        if token is not None and exchange not in self._names:
            exchange.tell = ProgressSender(self._connection.send, token).tell
        self._names.setdefault(exchange, []).append(call_id)
        self._calls[call_id] = exchange
        if exchange.over:  # meanwhile, and whoever ended it found nothing to forget
            self.leave(exchange)

    def leave(self, exchange: ClientRequest) -> None:
        """Nobody waits for it any more."""
        for call_id in self._names.pop(exchange, ()):
            if self._calls.get(call_id) is exchange:
                del self._calls[call_id]

    def progress(self, call_id: str, line: str) -> None:
        """Tells how far a call is."""
        if (exchange := self._calls.get(call_id)) is not None:
            exchange.progress(line)

    def log(self, level: Level, data: dict[str, Any], call_id: str | None = None) -> None:
        """Tells something that a person should know, where the client wants to hear of that much."""
        if self._wanted(LEVELS.index(level), call_id):
            params = {"level": level, "logger": "handrail", "data": data}
            self._connection.send({"method": "notifications/message", "params": params})

    def _wanted(self, level: int, call_id: str | None) -> bool:
        """A client without a handshake is told about the requests that ask for it, and about nothing else."""
        if not self._connection.caller.modern:
            return level >= self._level
        about = list(self._calls.values()) if call_id is None else [self._calls.get(call_id)]
        asked = [_level_of(exchange) for exchange in about if exchange is not None]
        return any(least is not None and level >= least for least in asked)


def _level_of(exchange: ClientRequest) -> int | None:
    meta: dict[str, Any] = exchange.params.get("_meta") or {}
    asked = meta.get(LEVEL_KEY) if exchange.caller.modern else None
    return None if asked is None else LEVELS.index(asked)
