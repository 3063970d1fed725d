"""JSON-RPC messages with a header, as language servers send them."""

import asyncio
from typing import Any

import msgspec
from msgspec import Raw, Struct

from handrail.protocol.wire import decode_json

MAX_HEADER_BYTES = 64 << 10
_MAX_MESSAGE_BYTES = 32 << 20
_HEADER_END = b"\r\n\r\n"
_NULL = Raw(b"null")
CONTENT_MODIFIED, SERVER_CANCELLED = -32801, -32802
"""Error codes of a request that can be repeated."""


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
    """The server does not follow the protocol. The text says how."""


def parse_message(body: bytes) -> LspMessage:
    """NonsenseError if it is no message."""
    try:
        return decode_json(body, LspMessage)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NonsenseError("it sent a message that is not JSON-RPC") from None


def encode_frame(message: dict[str, Any]) -> bytes:
    body = msgspec.json.encode({"jsonrpc": "2.0", **message})
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The body of the next message. None at the end. NonsenseError if it is too long, or not the protocol.

    The limit of the reader is the limit of a header.
    """
    try:
        header = await reader.readuntil(_HEADER_END)
        return await reader.readexactly(_parse_length(header))
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise NonsenseError("its output does not follow the protocol") from None


def _parse_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 20:
            length = int(value)
            if length > _MAX_MESSAGE_BYTES:
                raise NonsenseError(f"it sent a message of more than {_MAX_MESSAGE_BYTES:,} bytes")
            return length
    raise NonsenseError("its output does not follow the protocol")
