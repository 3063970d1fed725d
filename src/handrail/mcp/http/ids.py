"""Of the requests of a connection with a handshake no two have one id at the same time.

The SDK sends answers by the id. Of two with the same one the first would wait for ever, and the second could be given
what was read for the first.
"""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from handrail.mcp.errors import INVALID_REQUEST
from handrail.mcp.http.callers import session_of
from handrail.mcp.http.guard import App, Message, Receive, Scope, Send

_REFUSED = "A request of this id is on its way, and is answered by itself; use every id once."
_Key = tuple[str, str]


class _Request(msgspec.Struct):
    id: int | str
    method: str


class Ids:
    """Those on their way: from when a request is read until it is answered and nobody is at work on it any more."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._count: Counter[_Key] = Counter()

    async def answer(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        """Has a request answered by the server, or refuses it."""
        session = dict(scope["headers"]).get(b"mcp-session-id")
        if scope["method"] != "POST" or session is None:
            await app(scope, receive, send)
            return
        came = await _body(receive, self._longest)
        request = _request(b"".join(message.get("body", b"") for message in came))
        if request is None:  # whatever it is, nobody waits for an answer by its id
            await app(scope, _again(came, receive), send)
        elif self._count[key := (session.decode("latin-1"), str(request.id))]:
            await _refuse(request.id, send)
        else:
            with self._held(key):
                await app(scope, _again(came, receive), send)

    async def handled(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Middleware of the server: a client that hung up has not ended its request."""
        with self._held((session_of(ctx), str(ctx.request_id))):
            return await call_next(ctx)

    @contextmanager
    def _held(self, key: _Key) -> Generator[None]:
        self._count[key] += 1
        try:
            yield
        finally:
            self._count[key] -= 1
            if not self._count[key]:
                del self._count[key]


async def _body(receive: Receive, longest: int) -> list[Message]:
    """What comes of a body; of one that is too long only so much that the server sees that it is."""
    came: list[Message] = []
    size, more = 0, True
    while more and size <= longest:
        came.append(message := await receive())
        size += len(message.get("body", b""))
        more = message["type"] == "http.request" and message.get("more_body", False)
    return came


def _again(came: list[Message], receive: Receive) -> Receive:
    """What came once more, and then what comes."""
    rest = iter(came)

    async def receive_again() -> Message:
        message = next(rest, None)
        return await receive() if message is None else message

    return receive_again


def _request(body: bytes) -> _Request | None:
    try:
        return msgspec.json.decode(body, type=_Request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


async def _refuse(request_id: int | str, send: Send) -> None:
    error = {"code": INVALID_REQUEST, "message": _REFUSED}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
