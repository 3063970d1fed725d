"""What is remembered of connections with a handshake, for as long as there may be one."""

import threading
from collections import OrderedDict

from handrail.mcp.caller import DEFAULT_LEVEL, Level

MAX_CONNECTIONS = 256
"""Connections that are kept though nobody uses them."""


class _WorksFor(threading.local):
    connection = ""


works_for = _WorksFor()
"""The connection that the calling thread works for."""


class ConnectionState:
    """Of one connection."""

    def __init__(self) -> None:
        self.level: Level = DEFAULT_LEVEL
        self.roots_are_known = False
        """Whether the client was asked which folders it works on, and has not said since that they changed."""
        self.offered: tuple[str, ...] | None = None
        """The tools that it was told of."""


class ConnectionStates:
    """By the ids that the SDK gives them. It does not say when one is over: those that were used last are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, ConnectionState] = OrderedDict()

    def get(self, session_id: str) -> ConnectionState:
        """One of them."""
        found = self._kept.setdefault(session_id, ConnectionState())
        self._kept.move_to_end(session_id)
        while len(self._kept) > MAX_CONNECTIONS:
            self._kept.popitem(last=False)
        return found
