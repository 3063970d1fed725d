"""JSON-RPC messages with a header, as language servers send them."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from handrail.protocol.wire import decode_json

MAX_MESSAGE_BYTES = 32 << 20
_MAX_HEADER_BYTES = 4 << 10
_HEADER_END = b"\r\n\r\n"
_NULL = Raw(b"null")
CONTENT_MODIFIED, SERVER_CANCELLED = -32801, -32802
"""Error codes of a request that can be repeated."""
METHOD_NOT_FOUND = -32601


class ResponseError(Struct, frozen=True):
    code: int = 0
    message: str = ""


class LspMessage(Struct, frozen=True):
    """A request, a notification or a response."""

    id: int | str | None = None
    method: str | None = None
    params: Raw = _NULL
    result: Raw = _NULL
    error: ResponseError | None = None


class NonsenseError(Exception):
    """The server sent bytes that are not the protocol. The text says which."""


def parse_message(body: bytes) -> LspMessage:
    """NonsenseError if it is no message."""
    try:
        return decode_json(body, LspMessage)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NonsenseError("it sent a message that is not JSON-RPC") from None


def encode_frame(message: dict[str, Any]) -> bytes:
    body = msgspec.json.encode({"jsonrpc": "2.0", **message})
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameReader:
    """Splits a stream into the bodies of messages. It holds at most one message."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """NonsenseError if the stream is not the protocol, or a message too long."""
        self._data += data
        while (body := self._take()) is not None:
            yield body

    def _take(self) -> bytes | None:
        if self._length is None:
            end = self._data.find(_HEADER_END)
            if end > _MAX_HEADER_BYTES or (end < 0 and len(self._data) > _MAX_HEADER_BYTES):
                raise NonsenseError("its output does not follow the protocol")
            if end < 0:
                return None
            self._length = _parse_length(bytes(self._data[:end]))
            del self._data[: end + len(_HEADER_END)]
        if len(self._data) < self._length:
            return None
        body, self._length = bytes(self._data[: self._length]), self._clear(self._length)
        return body

    def _clear(self, length: int) -> None:
        del self._data[:length]


def _parse_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 20:
            length = int(value)
            if length > MAX_MESSAGE_BYTES:
                raise NonsenseError(f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes")
            return length
    raise NonsenseError("its output does not follow the protocol")
