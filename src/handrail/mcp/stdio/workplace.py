"""The session that the client's calls run in: opened when the first request needs it."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.mcp.caller import Caller
from handrail.mcp.calling import ClientCalls
from handrail.protocol.errors import HandrailError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError

if TYPE_CHECKING:
    from handrail.api import Handrail

OpenRail = Callable[[Caller], "Handrail"]
"""Opens a session for a client; HandrailError where that cannot be."""


class LazySession:
    """Where it cannot be opened, whoever asks is told why, and so is stderr; the next request tries again, so that
    a mended setting counts without a new start."""

    def __init__(self, open_rail: OpenRail, note: Callable[[str], None]) -> None:
        self._open_rail = open_rail
        self._note = note
        self._lock = threading.Lock()
        self._calls: ClientCalls | None = None
        self._noted = ""
        self._opened: list[Callable[[Handrail], None]] = []

    @property
    def rail(self) -> "Handrail | None":
        """The session, if it is open."""
        return self._calls.rail if self._calls is not None else None

    def when_open(self, then: "Callable[[Handrail], None]") -> None:
        """Has something done as soon as the session is open."""
        self._opened.append(then)

    def calls(self, caller: Caller) -> ClientCalls:
        """The calls of this client; ProtocolError where its session cannot be opened."""
        if self._calls is not None:
            return self._calls
        with self._lock:
            if self._calls is None:
                self._calls = ClientCalls(self._opened_for(caller))
        return self._calls

    def _opened_for(self, caller: Caller) -> "Handrail":
        try:
            rail = self._open_rail(caller)
        except HandrailError as error:
            self._note_once(f"handrail: {error}")
            raise ProtocolError(INTERNAL_ERROR, f"handrail cannot open its session: {error}") from None
        for then in self._opened:
            then(rail)
        return rail

    def _note_once(self, text: str) -> None:
        """A client may try again and again, and nobody may read stderr: what fills it up would stop us."""
        if text != self._noted:
            self._noted = text
            with suppress(OSError):
                self._note(text)
