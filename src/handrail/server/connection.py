"""The WebSocket connections of the server."""

from typing import TYPE_CHECKING, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.protocol import State

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_GOODBYE_SECONDS = 5.0
_MAX_UNREAD_BYTES = 1_000_000
_MAX_PARTS = 10_000


class SocketConnection(WebSocketsSansIOProtocol):
    """Writes frames that are sent with `more` together with the next one: a system call takes longer than a frame.

    uvicorn would wait for the client before it sends the close frame, and then for ever.
    """

    def handle_ping(self) -> None:
        """Overrides uvicorn, which would keep the pongs of a client that sends pings and reads nothing."""
        if self.close_sent:
            self.conn.data_to_send()  # drops the pong
            return
        super().handle_ping()
        if self.transport.get_write_buffer_size() > _MAX_UNREAD_BYTES:
            self.transport.abort()

    def handle_cont(self, event: Frame) -> None:
        """Overrides uvicorn, which would keep empty parts of a message without end."""
        super().handle_cont(event)
        if len(self.frames) > _MAX_PARTS:
            self.transport.abort()

    async def send(self, message: "ASGISendEvent") -> None:
        if message.get("more") and self.conn.state is State.OPEN:
            self.conn.send_text(cast("str", message.get("text")).encode())
            return
        if message["type"] == "websocket.close" and not self.writable.is_set():
            self.writable.set()
            self.loop.call_later(_GOODBYE_SECONDS, self.transport.abort)
        await super().send(message)
