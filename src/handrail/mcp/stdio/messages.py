"""Tells what a line is: a request, a notification, an answer to something that the client was asked, or none."""

from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, cast

import msgspec

from handrail.mcp.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE, ProtocolError
from handrail.protocol.wire import get_json_decoder

RequestId = str | int
_MAX_ID_CHARS = 1_000
_LARGEST_ID = 1 << 63
_Text = Annotated[str, msgspec.Meta(max_length=_MAX_ID_CHARS)]
_Number = Annotated[int, msgspec.Meta(ge=-_LARGEST_ID, le=_LARGEST_ID - 1)]


class JsonRpcRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It is answered."""

    id: _Text | _Number
    method: str
    params: dict[str, Any] = {}


class _Sent(JsonRpcRequest, frozen=True, kw_only=True):
    """A request as it is spelled."""

    jsonrpc: Literal["2.0"]


class JsonRpcNotification(NamedTuple):
    """It is not."""

    method: str
    params: dict[str, Any]


class JsonRpcReply(NamedTuple):
    """What the client says to something that it was asked; None where it says an error."""

    id: object
    result: dict[str, Any] | None


class BadMessage(ProtocolError):  # noqa: N818  it is told as any other error of the protocol
    """A message that is none, and the id of its answer as far as it could be read."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


_decode = msgspec.json.Decoder().decode
_decode_request = get_json_decoder(_Sent).decode
_NOT_PLAIN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def parse_message(line: bytes) -> JsonRpcRequest | JsonRpcNotification | JsonRpcReply:
    """Reads a line; BadMessage where it is no message."""
    try:
        return _decode_request(line)
    except _NOT_PLAIN:  # something else, or something is wrong with it: then it is told what
        return _message_of(_fields(line))


def _message_of(fields: dict[str, Any]) -> JsonRpcRequest | JsonRpcNotification | JsonRpcReply:
    given = fields.get("id")
    request_id = given if is_id(given) else None
    if fields.get("jsonrpc") != "2.0":
        raise BadMessage(INVALID_REQUEST, 'a message has "jsonrpc": "2.0"', request_id)
    if "method" not in fields:
        return _reply(fields, request_id)
    method, params = fields["method"], fields.get("params", {})
    if not isinstance(method, str):
        raise BadMessage(INVALID_REQUEST, "the method of a message is a text", request_id)
    if "id" not in fields:
        return JsonRpcNotification(method, _object(params) or {})
    if request_id is None:
        rule = f"the id of a request is a text of at most {_MAX_ID_CHARS} characters, or an integer of 64 bits"
        raise BadMessage(INVALID_REQUEST, rule)
    if (found := _object(params)) is None:
        raise BadMessage(INVALID_PARAMS, f"the params of {method[:80]} are an object", request_id)
    return JsonRpcRequest(request_id, method, found)


def is_id(given: object) -> TypeGuard[RequestId]:
    """Whether something can be the id of a request."""
    if isinstance(given, str):
        return len(given) <= _MAX_ID_CHARS
    return type(given) is int and -_LARGEST_ID <= given < _LARGEST_ID


def _fields(line: bytes) -> dict[str, Any]:
    try:
        message = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(PARSE, f"the line is no JSON: {error}") from None
    except RecursionError:
        raise BadMessage(PARSE, "the line is JSON in too many brackets") from None
    if isinstance(message, list):
        raise BadMessage(INVALID_REQUEST, "messages come one by one: this protocol has no batches")
    if not isinstance(message, dict):
        raise BadMessage(INVALID_REQUEST, "a message is an object")
    return cast("dict[str, Any]", message)


def _reply(fields: dict[str, Any], request_id: RequestId | None) -> JsonRpcReply:
    if request_id is None or not ("result" in fields or "error" in fields):
        raise BadMessage(INVALID_REQUEST, "a message has a method, or an id and a result or an error", request_id)
    return JsonRpcReply(request_id, None if "error" in fields else _object(fields["result"]))


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
