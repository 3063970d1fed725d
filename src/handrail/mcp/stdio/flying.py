"""The requests that are on their way, by the ids that the client gave them."""

import threading

from handrail.mcp.errors import BUSY
from handrail.mcp.stdio.connection import ClientRequest
from handrail.protocol.jsonrpc import ProtocolError, RequestId

MAX_REQUESTS = 4_096
"""Requests at once."""
MAX_REQUEST_BYTES = 256 << 20
"""And the length of all of them together."""


class InFlight:
    """Every method may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the condition itself takes five times as long to enter, at every request
        self._none_left = threading.Condition(self._lock)
        self._known: dict[RequestId, tuple[ClientRequest, int]] = {}
        self._bytes = 0
        self._awaited = False
        """Whether somebody waits until none is left."""

    def add(self, exchange: ClientRequest, size: int) -> None:
        """Notes one; ProtocolError where there are too many."""
        with self._lock:
            if len(self._known) >= MAX_REQUESTS or (self._known and self._bytes + size > MAX_REQUEST_BYTES):
                words = f"{len(self._known)} requests of {self._bytes >> 20} MiB are on their way"
                raise ProtocolError(BUSY, f"{words}, and no more are taken. Send it again when some are answered.")
            self._known[exchange.request_id] = (exchange, size)
            self._bytes += size

    def remove(self, exchange: ClientRequest) -> None:
        """It is answered or cancelled."""
        with self._lock:
            found = self._known.get(exchange.request_id)
            if found is not None and found[0] is exchange:
                del self._known[exchange.request_id]
                self._bytes -= found[1]
                if self._awaited and not self._known:
                    self._none_left.notify_all()

    def get(self, request_id: object) -> ClientRequest | None:
        """The request of this id, if it is on its way."""
        found = self._known.get(request_id) if isinstance(request_id, RequestId) else None
        return found[0] if found is not None and type(found[0].request_id) is type(request_id) else None

    def all(self) -> list[ClientRequest]:
        """All of them."""
        with self._lock:
            return [exchange for exchange, _ in self._known.values()]

    def wait(self, seconds: float) -> None:
        """Waits a little until none is left."""
        with self._lock:
            self._awaited = True
            self._none_left.wait_for(lambda: not self._known, seconds)
