"""What a line of the client is: a message, why it is none, or nothing."""

import json
from typing import Any, cast

import msgspec

MAX_MESSAGE_BYTES = 64 << 20
"""Bytes of one message: an editor may put whole files into a prompt."""
_HALF = b"\\ud"
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600


class InvalidMessage(msgspec.Struct, frozen=True):
    """Why a line is no message."""

    code: int
    words: str
    request: str | int | None = None
    """The id to answer with, where one can be made out."""


def parse_message(line: bytearray) -> dict[str, Any] | InvalidMessage | None:
    """A message as the connection can take it."""
    if not line.strip():
        return None
    if len(line) > MAX_MESSAGE_BYTES:
        return _refusal(_INVALID_REQUEST, f"a message has at most {MAX_MESSAGE_BYTES:,} bytes")
    try:
        read = _decoded(line)
    except (ValueError, RecursionError):
        return _refusal(_PARSE_ERROR, "a message is one line of JSON; this is none")
    if not isinstance(read, dict):
        return _refusal(_INVALID_REQUEST, f"a message is an object, not {type(read).__name__}; batches are not served")
    return _checked(cast("dict[str, Any]", read))


def _decoded(line: bytearray) -> Any:
    """What JSON says. Editors that count in halves of characters may cut one in two: the half is replaced, since what
    cannot be read has no id to answer, and whoever asked would wait for ever."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        if _HALF not in line.lower():
            raise
        return msgspec.json.decode(json.dumps(json.loads(line), ensure_ascii=False).encode(errors="replace"))


def _checked(message: dict[str, Any]) -> dict[str, Any] | InvalidMessage:
    request = message.get("id")
    if "id" in message and not _is_id(request):
        return _refusal(_INVALID_REQUEST, "an id is a text or a whole number")
    method = message.get("method")
    if method is None and ("result" in message or "error" in message):
        well = isinstance(message.get("error", {}), dict | None)
        return message if well else {**message, "error": {}}
    if not isinstance(method, str):
        return _refusal(_INVALID_REQUEST, "a message has a method, or a result, or an error", request)
    if not isinstance(message.get("params", {}), dict | None):
        return _refusal(_INVALID_REQUEST, "params are an object", request)
    return message


def _refusal(code: int, words: str, request: Any = None) -> InvalidMessage:
    return InvalidMessage(code, words, request if _is_id(request) else None)


def _is_id(value: object) -> bool:
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))
