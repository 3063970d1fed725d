"""The ids of requests on connections with a handshake. The SDK sends an answer to whoever used its id last: what was
read of one file for another."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
from mcp.server.context import CallNext, HandlerResult
from mcp.server.transport_security import RequestBodyLimitMiddleware

from handrail.mcp.errors import SAME_ID
from handrail.mcp.http.callers import Context, read_session_id
from handrail.mcp.http.guard import (
    App,
    HttpRefusal,
    Message,
    Receive,
    Scope,
    Send,
    find_header,
    is_modern_request,
    send_refusal,
)
from handrail.protocol.jsonrpc import INVALID_REQUEST
from handrail.protocol.wire import decode_json

MAX_BODY_BYTES = 16 << 20
_SENT_WITHIN_SECONDS = 0.5
"""Seconds. No client may use an id a second time, so nobody waits for it."""

Key = tuple[str, str]


class _MessageHead(msgspec.Struct):
    """What of a message is looked at. Not everything that has an id is a request: answers to ours have one, too."""

    method: str
    id: int | str | float


class RequestIds:
    """Those that are on their way. A client may hang up and its request still be at work, so both count."""

    def __init__(self) -> None:
        self._sent: set[Key] = set()
        self._at_work: set[Key] = set()

    def wrap_app(self, app: App) -> App:
        """Refuses a request whose id is on its way, and has all others answered. Bodies have a bound."""

        async def looked_at(scope: Scope, receive: Receive, send: Send) -> None:
            session = find_header(scope, b"mcp-session-id")
            if scope["method"] != "POST" or session is None or is_modern_request(scope):
                await app(scope, receive, send)
                return
            whole = await receive()
            await self._passed_on(session.decode("latin-1"), whole, app, (scope, _after(whole, receive), send))

        return RequestBodyLimitMiddleware(looked_at, MAX_BODY_BYTES)

    async def _passed_on(self, session: str, whole: Message, app: App, given: tuple[Scope, Receive, Send]) -> None:
        head = _head(whole.get("body", b""))
        key = None if head is None else (session, str(head.id))
        if head is None or key is None:
            await app(*given)
        elif key in self._sent or key in self._at_work:
            await send_refusal(_refusal(head), given[2])
        else:
            self._sent.add(key)
            try:
                await app(*given)
            finally:
                self._sent.discard(key)

    async def track_request(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """For the SDK: around all that is done for a request."""
        key = (read_session_id(ctx), str(ctx.request_id))
        self._at_work.add(key)
        try:
            return await call_next(ctx)
        finally:
            self._over(key)

    def _over(self, key: Key) -> None:
        """Its answer is still to be sent: to who waits for it, or, where the client hung up, to whoever has its id."""
        if key in self._sent:
            self._at_work.discard(key)
        else:
            asyncio.get_running_loop().call_later(_SENT_WITHIN_SECONDS, self._at_work.discard, key)


def _head(body: bytes) -> _MessageHead | None:
    with suppress(
        msgspec.DecodeError, UnicodeDecodeError, RecursionError
    ):  # what is none is refused by who reads all of it
        return decode_json(body, _MessageHead)
    return None


def _after(first: Message, receive: Receive) -> Receive:
    left = [first]

    async def next_one() -> Message:
        return left.pop() if left else await receive()

    return next_one


def _refusal(head: _MessageHead) -> HttpRefusal:
    error: dict[str, Any] = {"code": INVALID_REQUEST, "message": f"{head.method[:80]}: {SAME_ID}"}
    text = msgspec.json.encode({"jsonrpc": "2.0", "id": head.id, "error": error}).decode()
    return HttpRefusal(400, text, kind=b"application/json")
