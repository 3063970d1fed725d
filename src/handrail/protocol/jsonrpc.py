"""JSON-RPC 2.0 messages, one a line."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, cast

import msgspec

from handrail.protocol.wire import get_json_decoder

# Numbers of the standard.
_PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603

RequestId = str | int
_MAX_ID_CHARS = 1_000
_MAX_ID = 1 << 63
_IdText = Annotated[str, msgspec.Meta(max_length=_MAX_ID_CHARS)]
_IdNumber = Annotated[int, msgspec.Meta(ge=-_MAX_ID, le=_MAX_ID - 1)]


class ProtocolError(Exception):
    """Refuses a request. The peer gets an error instead of a result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_wire(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class MalformedMessage(ProtocolError):  # noqa: N818  the base class has the suffix
    """Refuses a line. Its id is None if it could not be read."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


class JsonRpcRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: _IdText | _IdNumber
    method: str
    params: dict[str, Any] = {}


class JsonRpcNotification(NamedTuple):
    method: str
    params: dict[str, Any]


class JsonRpcReply(NamedTuple):
    """The response to a request of ours. The result is None if it is an error."""

    id: RequestId
    result: dict[str, Any] | None


class LineSplitter:
    """Splits a stream of bytes into lines of bounded length."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """The lines that these bytes complete. None for a line above the bound, whose content is dropped."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            yield None if self.is_oversized else self.remainder
            self._parts, self._size = [], 0
        self._add(rest)

    @property
    def is_oversized(self) -> bool:
        """Whether the bytes behind the last newline exceed the bound."""
        return self._size > self._max_bytes

    @property
    def remainder(self) -> bytes:
        """The bytes behind the last newline. None of an oversized line."""
        return b"".join(self._parts)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self.is_oversized:
            self._parts = []
        elif part:
            self._parts.append(part)


class _RequestLine(JsonRpcRequest, frozen=True, kw_only=True):
    jsonrpc: Literal["2.0"]


_decode = msgspec.json.Decoder().decode
_decode_request = get_json_decoder(_RequestLine).decode


def parse_message(line: bytes) -> JsonRpcRequest | JsonRpcNotification | JsonRpcReply:
    """Raises MalformedMessage."""
    try:
        return _decode_request(line)  # most lines, in one step
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _check_message(decode_fields(line))


def decode_fields(line: bytes) -> dict[str, Any]:
    """The fields of a message. Raises MalformedMessage."""
    try:
        message = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedMessage(_PARSE_ERROR, f"the line is not JSON: {error}") from None
    except RecursionError:
        raise MalformedMessage(_PARSE_ERROR, "the line is JSON with too many nested brackets") from None
    if isinstance(message, list):
        raise MalformedMessage(INVALID_REQUEST, "send messages one by one: this protocol has no batches")
    if not isinstance(message, dict):
        raise MalformedMessage(INVALID_REQUEST, "a message is an object")
    return cast("dict[str, Any]", message)


def _check_message(fields: dict[str, Any]) -> JsonRpcRequest | JsonRpcNotification | JsonRpcReply:
    """The message that these fields are. Raises MalformedMessage."""
    value = fields.get("id")
    request_id = value if is_request_id(value) else None
    if fields.get("jsonrpc") != "2.0":
        raise MalformedMessage(INVALID_REQUEST, 'a message has "jsonrpc": "2.0"', request_id)
    if "method" not in fields:
        return _check_reply(fields, request_id)
    method, params = fields["method"], fields.get("params", {})
    if not isinstance(method, str):
        raise MalformedMessage(INVALID_REQUEST, "the method of a message is a text", request_id)
    if "id" not in fields:
        return JsonRpcNotification(method, _get_object(params) or {})
    if request_id is None:
        rule = f"the id of a request is a text of at most {_MAX_ID_CHARS} characters, or an integer of 64 bits"
        raise MalformedMessage(INVALID_REQUEST, rule)
    if (found := _get_object(params)) is None:
        raise MalformedMessage(INVALID_PARAMS, f"the params of {method[:80]} are an object", request_id)
    return JsonRpcRequest(request_id, method, found)


def is_request_id(value: object) -> TypeGuard[RequestId]:
    if isinstance(value, str):
        return len(value) <= _MAX_ID_CHARS
    return type(value) is int and -_MAX_ID <= value < _MAX_ID


def repair_line(line: bytes) -> bytes:
    """The JSON of a line with U+FFFD for lone surrogates and for bytes that are no UTF-8. Empty if it is no JSON.

    Peers that count in UTF-16 or in bytes may cut a text in the middle of a character. The rest is still readable.
    """
    import json  # noqa: PLC0415  few lines need a repair, and every client waits for the start

    try:
        text = json.dumps(json.loads(line.decode("utf-8", "replace")), ensure_ascii=False)
    except (ValueError, RecursionError):
        return b""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _check_reply(fields: dict[str, Any], request_id: RequestId | None) -> JsonRpcReply:
    if request_id is None or not ("result" in fields or "error" in fields):
        rule = "a message has a method, or an id and a result or an error"
        raise MalformedMessage(INVALID_REQUEST, rule, request_id)
    return JsonRpcReply(request_id, None if "error" in fields else _get_object(fields["result"]))


def _get_object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
