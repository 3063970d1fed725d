"""The WebSocket connections of the server, which can be closed even if the client does not read."""

from typing import TYPE_CHECKING

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_GOODBYE_SECONDS = 5.0


class SocketConnection(WebSocketsSansIOProtocol):
    """uvicorn would wait for the client before it sends the close frame, and then for ever."""

    async def send(self, message: "ASGISendEvent") -> None:
        if message["type"] == "websocket.close" and not self.writable.is_set():
            self.writable.set()
            self.loop.call_later(_GOODBYE_SECONDS, self.transport.abort)
        await super().send(message)
