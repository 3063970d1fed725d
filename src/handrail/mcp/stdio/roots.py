"""The folders that a client with a handshake works on: it is asked, and what is not used is told."""

import threading
from typing import TYPE_CHECKING, Any

from handrail.mcp.stdio.connection import StdioConnection
from handrail.mcp.stdio.telling import Notifier
from handrail.protocol.errors import HandrailError

if TYPE_CHECKING:
    from handrail.api import Handrail


class ClientRoots:
    """Asks the client once it may be asked, and again when it says that they changed; the last answer counts."""

    def __init__(self, connection: StdioConnection, telling: Notifier) -> None:
        self._connection, self._telling = connection, telling
        self._lock = threading.Lock()
        self._asked = self._heard = 0
        """How often it was asked, and which of those was the last that it answered."""
        self._folders: tuple[str, ...] | None = None
        self._rail: Handrail | None = None

    def ask(self) -> None:
        """Asks for them, if the client has any to tell of."""
        if self._connection.caller.has_roots:
            self._asked = number = self._asked + 1
            self._connection.ask("roots/list", {}, lambda result: self._told(number, result))

    def open(self, rail: "Handrail") -> None:
        """The session is open: what the client told before counts from here on."""
        with self._lock:
            self._rail = rail
            self._honour()

    def _told(self, number: int, result: dict[str, Any] | None) -> None:
        """By a worker, so a later answer may be here first."""
        from handrail.mcp.client_folders import parse_client_folders  # noqa: PLC0415  few clients tell of any

        if result is None:
            return
        with self._lock:
            if number > self._heard:
                self._heard = number
                self._folders = parse_client_folders(result)
                self._honour()

    def _honour(self) -> None:
        if self._rail is None or self._folders is None:
            return
        try:
            for text in self._rail.set_client_roots(self._folders):
                self._telling.log("warning", {"text": text})
        except HandrailError:
            pass  # the session was closed meanwhile
