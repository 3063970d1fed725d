"""Clients that follow a task by WebSocket: one event loop, as little work for each frame as possible."""

import asyncio
import json
import re
import struct
import time
from datetime import datetime
from http.client import HTTPConnection
from typing import Any, NamedTuple

from bench.server.program import TOKEN

_EVENT = re.compile(rb'"seq":(\d+),.{0,120}?"time":"([^"]+)"')
_END = re.compile(rb'^\{"type":"event","event":\{"kind":"(?:end|error)"')
_CLOSE, _PING, _PONG = 8, 9, 10
_NO_MASK = bytes(4)


class Delivery(NamedTuple):
    seq: int
    delay: float
    """Seconds from the time of the event to its arrival."""


class Follower(asyncio.Protocol):
    """Reads frames of a server, which never masks or splits them."""

    def __init__(self, port: int, task: str, after: int = 0, *, reads: bool = True) -> None:
        self._port, self._task, self._after, self._reads = port, task, after, reads
        self._rest = b""
        self._is_open = False
        self.deliveries: list[Delivery] = []
        self.caught_up = asyncio.Event()
        self.ended = asyncio.Event()
        """The turn has ended, or the connection."""
        self.code: int | None = None
        """The close code of the server."""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(
            f"GET /ws/{self._task}?after={self._after} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        if not self._reads:
            transport.pause_reading()

    def read_on(self) -> None:
        """Reads from now on."""
        assert self.transport is not None
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        now = time.time()
        data = self._rest + data
        if not self._is_open:
            head, found, data = data.partition(b"\r\n\r\n")
            if not found:
                self._rest = head
                return
            assert b" 101 " in head.split(b"\r\n")[0], head
            self._is_open = True
        at = 0
        while (frame := _find_frame(data, at)) is not None:
            start, end = frame
            self._take(data[at] & 15, data[start:end], now)
            at = end
        self._rest = data[at:]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        self.caught_up.set()
        self.ended.set()

    def _take(self, kind: int, payload: bytes, now: float) -> None:
        if kind == _CLOSE:
            self.code = struct.unpack("!H", payload[:2])[0]
        elif kind == _PING:
            assert self.transport is not None
            self.transport.write(bytes((0x80 | _PONG, 0x80 | len(payload))) + _NO_MASK + payload)
        elif payload.startswith(b'{"type":"event"'):
            found = _EVENT.search(payload)
            assert found is not None
            self.deliveries.append(Delivery(int(found[1]), now - parse_time(found[2])))
            if _END.match(payload):
                self.ended.set()
        elif payload.startswith(b'{"type":"caught_up"'):
            self.caught_up.set()


def parse_time(text: bytes) -> float:
    return datetime.fromisoformat(text.decode()).timestamp()


def _find_frame(data: bytes, at: int) -> tuple[int, int] | None:
    """The start and the end of the payload of the frame at a place, if all of it is here."""
    if len(data) < at + 2:
        return None
    size, start = data[at + 1] & 127, at + 2
    if size == 126:
        size, start = int.from_bytes(data[at + 2 : at + 4], "big"), at + 4
    elif size == 127:
        size, start = int.from_bytes(data[at + 2 : at + 10], "big"), at + 10
    return (start, start + size) if len(data) >= start + size else None


async def follow(port: int, task: str, after: int = 0, *, reads: bool = True) -> Follower:
    loop = asyncio.get_running_loop()
    _, follower = await loop.create_connection(lambda: Follower(port, task, after, reads=reads), "127.0.0.1", port)
    return follower


def request(port: int, method: str, path: str, body: Any = None) -> Any:
    """The body of a response. AssertionError if the status is not a success."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {TOKEN}"} | ({} if body is None else {"Content-Type": "application/json"})
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    assert response.status < 300, (response.status, content)
    return json.loads(content) if content else None
