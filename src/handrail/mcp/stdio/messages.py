"""Tells what a line is: a request, a notification, an answer to something that the client was asked, or none."""

from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from handrail.mcp.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE, ProtocolError

RequestId = str | int
_decode = msgspec.json.Decoder().decode
_LONGEST_ID = 1_000
_LARGEST_ID = 1 << 63


class Request(NamedTuple):
    """It is answered."""

    id: RequestId
    method: str
    params: dict[str, Any]


class Notification(NamedTuple):
    """It is not."""

    method: str
    params: dict[str, Any]


class Reply(NamedTuple):
    """What the client says to something that it was asked; None where it says an error."""

    id: object
    result: dict[str, Any] | None


class BadMessage(ProtocolError):  # noqa: N818  it is told as any other error of the protocol
    """A message that is none, and the id of its answer as far as it could be read."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


def message_of(line: bytes) -> Request | Notification | Reply:
    """Reads a line; BadMessage where it is no message."""
    fields = _fields(line)
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
        return Notification(method, _object(params) or {})
    if request_id is None:
        rule = f"the id of a request is a text of at most {_LONGEST_ID} characters, or an integer of 64 bits"
        raise BadMessage(INVALID_REQUEST, rule)
    if (found := _object(params)) is None:
        raise BadMessage(INVALID_PARAMS, f"the params of {method[:80]} are an object", request_id)
    return Request(request_id, method, found)


def is_id(given: object) -> TypeGuard[RequestId]:
    """Whether something can be the id of a request."""
    if isinstance(given, str):
        return len(given) <= _LONGEST_ID
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


def _reply(fields: dict[str, Any], request_id: RequestId | None) -> Reply:
    if request_id is None or not ("result" in fields or "error" in fields):
        raise BadMessage(INVALID_REQUEST, "a message has a method, or an id and a result or an error", request_id)
    return Reply(request_id, None if "error" in fields else _object(fields["result"]))


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
