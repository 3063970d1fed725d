"""The ASGI middleware around the SDK.

It adds to the SDK: a bound on idle sessions, unique request ids, and whether an answer reached its client.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, cast

import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.transport_security import RequestBodyLimitMiddleware

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
from handrail.mcp.protocol import DEFAULT_LEVEL, SAME_ID, Level
from handrail.protocol.jsonrpc import INVALID_REQUEST
from handrail.protocol.wire import decode_json

MAX_IDLE_SESSIONS = 256
"""Clients come and go without a goodbye. Beyond this, the session that was idle longest is closed for a new one."""
MAX_BODY_BYTES = 16 << 20
_ANSWER_SECONDS = 0.5
"""The time in which the SDK sends an answer whose client hung up."""
_ID = b"mcp-session-id"
_REPLY = "handrail.reply"
_SESSION = "handrail.session"

Context = ServerRequestContext[Any, Any]
OnReply = Callable[[bool], Awaitable[None]]


class _MessageHead(msgspec.Struct):
    """A request. An answer to a request of ours has an id too, but no method."""

    method: str
    id: int | str | float


class HttpSession:
    """A connection with a handshake. MCP calls it a session."""

    def __init__(self) -> None:
        self.requests = 0
        """The HTTP requests that are in flight."""
        self.sent_ids: set[str] = set()
        self.working_ids: set[str] = set()
        """The ids of requests whose answer was not sent yet, and of those that a handler works on. Both matter: a
        client may hang up while a handler works, and the SDK sends an answer to the last request of its id."""
        self.level: Level = DEFAULT_LEVEL
        self.knows_roots = False
        """Whether the client was asked for its roots since they changed."""
        self.offered: tuple[str, ...] | None = None
        """The tools at the last check."""


class HttpReply:
    """The answer to one HTTP request."""

    def __init__(self) -> None:
        self._over = self._reached = False
        self._on_end: list[OnReply] = []

    @property
    def is_lost(self) -> bool:
        """Whether the client hung up before the end."""
        return self._over and not self._reached

    async def on_end(self, then: OnReply) -> None:
        """Calls this at the end, with whether the whole answer was sent."""
        if self._over:
            await then(self._reached)
        else:
            self._on_end.append(then)

    def end(self, *, reached: bool) -> None:
        """The first end counts."""
        if not self._over:
            self._over, self._reached = True, reached

    async def settle(self) -> None:
        self.end(reached=False)
        for then in self._on_end:
            await then(self._reached)


class Middleware:
    """Wraps the SDK's application."""

    def __init__(self, app: App, max_sessions: int = MAX_IDLE_SESSIONS) -> None:
        self._app = app
        self._limited: App = RequestBodyLimitMiddleware(self._check_id, MAX_BODY_BYTES)
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[bytes, HttpSession] = OrderedDict()
        """The last one is the one that was used last."""
        self._posts = 0
        self._no_posts = asyncio.Event()
        self._no_posts.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply, session_id = HttpReply(), find_header(scope, _ID)
        session = self._sessions.get(session_id) if session_id is not None else None

        async def hear() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                reply.end(reached=False)
            return message

        async def say(message: Message) -> None:
            if session is None and message["type"] == "http.response.start" and message["status"] < 400:
                self._sessions.update({value: HttpSession() for name, value in message["headers"] if name == _ID})
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                reply.end(reached=True)

        with self._count_post(scope):
            try:
                if session_id is not None and session is not None:
                    with self._use(session_id, session, scope):
                        await self._limited({**_drop_resumption(scope), _REPLY: reply, _SESSION: session}, hear, say)
                else:
                    if session_id is None and scope["method"] == "POST" and not is_modern_request(scope):
                        await self._make_room(scope)
                    await self._limited({**scope, _REPLY: reply}, hear, say)
            finally:
                await reply.settle()

    async def wait_until_answered(self, seconds: float) -> None:
        """Waits until no request waits for an answer. Requests that only listen do not count."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._no_posts.wait(), seconds)

    async def track_request(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """A middleware of the SDK: remembers the ids that handlers work on."""
        session, request_id = get_session(ctx), str(ctx.request_id)
        session.working_ids.add(request_id)
        try:
            return await call_next(ctx)
        finally:
            if request_id in session.sent_ids:
                session.working_ids.discard(request_id)
            else:  # its client hung up, and the SDK has still to send the answer
                loop = asyncio.get_running_loop()
                loop.call_later(_ANSWER_SECONDS, session.working_ids.discard, request_id)

    @contextmanager
    def _count_post(self, scope: Scope) -> Generator[None]:
        if scope["method"] != "POST":
            yield
            return
        self._posts += 1
        self._no_posts.clear()
        try:
            yield
        finally:
            self._posts -= 1
            if not self._posts:
                self._no_posts.set()

    @contextmanager
    def _use(self, session_id: bytes, session: HttpSession, scope: Scope) -> Generator[None]:
        session.requests += 1
        self._sessions.move_to_end(session_id)
        try:
            yield
        finally:
            session.requests -= 1
            if scope["method"] == "DELETE":
                self._sessions.pop(session_id, None)

    async def _make_room(self, scope: Scope) -> None:
        """Closes idle sessions. The SDK would keep them for half an hour, and reject the new client."""
        idle = [session_id for session_id, session in self._sessions.items() if not session.requests]
        for session_id in idle[: max(0, len(self._sessions) - self._max_sessions + 1)]:
            del self._sessions[session_id]
            await self._app({**scope, "method": "DELETE", "headers": [(_ID, session_id)]}, _receive_nothing, _ignore)

    async def _check_id(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses a request whose id is in flight. The body limit has already read the whole body."""
        session: HttpSession | None = scope.get(_SESSION)
        if scope["method"] != "POST" or session is None or is_modern_request(scope):
            await self._app(scope, receive, send)
            return
        body = await receive()
        head = _parse_head(body.get("body", b""))
        if head is None:
            await self._app(scope, _replay(body, receive), send)
            return
        request_id = str(head.id)
        if request_id in session.sent_ids or request_id in session.working_ids:
            await send_refusal(_build_refusal(head), send)
            return
        session.sent_ids.add(request_id)
        try:
            await self._app(scope, _replay(body, receive), send)
        finally:
            session.sent_ids.discard(request_id)


def get_reply(context: Context) -> HttpReply:
    """The answer to the request that a handler works on."""
    return cast("HttpReply", cast("Any", context.request).scope[_REPLY])


def get_session(context: Context) -> HttpSession:
    """The session of a request. A request without a handshake gets a new one."""
    scope: Scope = context.request.scope if context.request is not None else {}
    return scope.get(_SESSION) or HttpSession()


def get_session_id(context: Context) -> str:
    """Empty for a request without a handshake."""
    return context.request.headers.get(_ID.decode(), "") if context.request is not None else ""


def _drop_resumption(scope: Scope) -> Scope:
    """Drops Last-Event-ID: no event is stored for a second delivery, and the SDK would not answer at all."""
    return {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]}


def _parse_head(body: bytes) -> _MessageHead | None:
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the SDK refuses it
        return decode_json(body, _MessageHead)
    return None


def _replay(first: Message, receive: Receive) -> Receive:
    left = [first]

    async def receive_next() -> Message:
        return left.pop() if left else await receive()

    return receive_next


def _build_refusal(head: _MessageHead) -> HttpRefusal:
    error: dict[str, Any] = {"code": INVALID_REQUEST, "message": f"{head.method[:80]}: {SAME_ID}"}
    text = msgspec.json.encode({"jsonrpc": "2.0", "id": head.id, "error": error}).decode()
    return HttpRefusal(400, text, content_type=b"application/json")


async def _receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignore(_: Message) -> None:
    pass
