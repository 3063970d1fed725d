"""Tells the client when other tools are offered than before."""

import threading
from typing import TYPE_CHECKING, Any

from handrail.mcp.errors import BUSY
from handrail.mcp.stdio.connection import ClientRequest, StdioConnection
from handrail.protocol.jsonrpc import ProtocolError, RequestId

if TYPE_CHECKING:
    from handrail.api import Handrail

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_CHANGED = "notifications/tools/list_changed"
_MAX_SUBSCRIPTIONS = 64


class ToolListWatcher:
    """A client with a handshake is told; one without is, where a request of its listens for it."""

    def __init__(self, connection: StdioConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._streams: dict[RequestId, tuple[ClientRequest, bool]] = {}
        """Those that listen, and whether it is for tools."""
        self._offered: tuple[str, ...] | None = None
        self.greeted = False
        """Whether the handshake is over, so that the client may be told something."""

    def begin(self, exchange: ClientRequest) -> None:
        """Begins to listen. What the client wants to hear of, and never comes from here, is left out of the answer."""
        wanted: dict[str, Any] = exchange.params["notifications"]
        honoured = {"toolsListChanged": True} if wanted.get("toolsListChanged") is True else {}
        with self._lock:
            if len(self._streams) >= _MAX_SUBSCRIPTIONS:
                raise ProtocolError(BUSY, f"{_MAX_SUBSCRIPTIONS} subscriptions are open; end one of them first")
            self._streams[exchange.request_id] = (exchange, bool(honoured))
        params = {"_meta": _about(exchange), "notifications": honoured}
        self._connection.send({"method": "notifications/subscriptions/acknowledged", "params": params})

    def leave(self, exchange: ClientRequest) -> None:
        """It is over."""
        if exchange.request_id in self._streams:  # as few are
            with self._lock:
                self._streams.pop(exchange.request_id, None)

    def check(self, rail: "Handrail", told: tuple[str, ...] | None = None) -> None:
        """Sees whether other tools are offered than at the last look, or than the client was told of before there was
        a session."""
        offered = rail.tool_names()
        with self._lock:
            before, self._offered = self._offered, offered
        if (before is not None and before is not offered) or (told is not None and told != offered):
            self._tell()

    def end(self) -> None:
        """Ends what listens, in words."""
        with self._lock:
            streams = list(self._streams.values())
        for exchange, _ in streams:
            exchange.answer({"_meta": _about(exchange)})

    def _tell(self) -> None:
        if self.greeted:
            self._connection.send({"method": _CHANGED})
        with self._lock:
            streams = [exchange for exchange, for_tools in self._streams.values() if for_tools]
        for exchange in streams:
            self._connection.send({"method": _CHANGED, "params": {"_meta": _about(exchange)}})


def _about(exchange: ClientRequest) -> dict[str, Any]:
    return {SUBSCRIPTION_KEY: exchange.request_id}
