"""The WebSocket connections of the server."""

from typing import TYPE_CHECKING, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_GOODBYE_SECONDS = 5.0


class SocketConnection(WebSocketsSansIOProtocol):
    """Writes frames that are sent with `more` together with the next one: a system call takes longer than a frame.

    uvicorn would wait for the client before it sends the close frame, and then for ever.
    """

    async def send(self, message: "ASGISendEvent") -> None:
        if message.get("more") and self.conn.state is State.OPEN:
            self.conn.send_text(cast("str", message.get("text")).encode())
            return
        if message["type"] == "websocket.close" and not self.writable.is_set():
            self.writable.set()
            self.loop.call_later(_GOODBYE_SECONDS, self.transport.abort)
        await super().send(message)
