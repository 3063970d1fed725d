"""Lets in requests to an own name of the server, from no foreign page, with a token.

Host and Origin are checked first, as `handrail.mcp.http.guard` explains. A page has the token in a cookie that its
scripts cannot read. A request with the cookie may change something only if its Origin is the server's own. A token in
an address would get into histories and logs, so it is refused there.
"""

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from math import ceil
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import Response

from handrail.mcp.http.guard import Address, App, Message, Receive, Scope, Send
from handrail.mcp.http.listener import UnauthenticatedLimit
from handrail.protocol.wire import encode
from handrail.server.options import ApiFailure
from handrail.server.wire import ROLES, ApiCaller, ApiError, Closing, Role
from handrail.state import OWNER, StoredState

CALLER = "handrail.caller"
"""The caller of a request, in its scope."""
API, LOGIN, LOGOUT, MCP, METRICS = "/api/", "/api/login", "/api/logout", "/mcp", "/metrics"
_PROTECTED = (API, "/ws/", MCP, METRICS)
_PUBLIC = frozenset((LOGIN, LOGOUT))
_SCHEMES = ("http", "https")
_SAFE = frozenset(("GET", "HEAD"))
_QUERY_TOKENS = frozenset(("token", "access_token", "authorization"))
_MAX_TOKEN_CHARS = 1_000
_BURST_SECONDS = 4
_WATCH_SECONDS = 0.5
_MAX_KEYS = 4_096
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": _CSP,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
)
"""Headers of every response. A file of the console may have another `cache-control`."""


class ServerNames(NamedTuple):
    """The names by which clients may reach the server."""

    hosts: frozenset[str]
    origins: frozenset[str]
    cookie: str
    """The name of the cookie. It has the port: cookies of all ports of a host are in one jar."""

    @classmethod
    def build(cls, address: Address, names: Iterable[str] = (), *, has_tls: bool = False) -> "ServerNames":
        """`names`: hosts as clients write them, with a port if a proxy has another one."""
        own = address.names() if address.is_loopback else {address.name}
        named = [name.lower() for name in names]
        named += [f"{name}:{address.port}" for name in named if ":" not in name.rpartition("]")[2]]
        scheme = "https" if has_tls else "http"
        # A proxy may add TLS before the names that the operator gave.
        origins = {f"{scheme}://{host}" for host in own} | {f"{one}://{host}" for host in named for one in _SCHEMES}
        return cls(frozenset((*own, *named)), frozenset(origins), f"handrail-{address.port}")


class ServerLimits(NamedTuple):
    """The `[server]` settings that bound what a client may do."""

    body_bytes: int
    requests_per_second: int
    streams: int


class RateLimit:
    """A token bucket for each key. Keys that were not used for the longest time are forgotten."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What each bucket held at what time."""

    def take(self, key: str) -> float:
        """Takes one. Returns 0, or the seconds to wait if the bucket is empty."""
        now = self._clock()
        held, since = self._buckets.pop(key, (self._burst, now))
        held = min(self._burst, held + (now - since) * self._per_second)
        is_free = held >= 1
        self._buckets[key] = (held - 1 if is_free else held, now)
        if len(self._buckets) > _MAX_KEYS:
            self._buckets.popitem(last=False)
        return 0.0 if is_free else (1 - held) / self._per_second


class TokenBook:
    """The token of the start, and the named tokens of the state folder."""

    def __init__(self, state: StoredState, start_token: str | None) -> None:
        self._named = state.open_tokens()
        self.digest = self._named.digest
        self._start_digest = None if start_token is None else self.digest(start_token)

    def find_caller(self, token: str) -> ApiCaller | None:
        """Whose token it is. A removed token counts no more. Takes the same time for every wrong token."""
        return self.find_by_digest(self.digest(token))

    def find_by_digest(self, digest: str) -> ApiCaller | None:
        found = None
        for name, role, own in self._list_all():
            if hmac.compare_digest(own, digest):
                found = ApiCaller(name=name, role=role)
        return found

    def _list_all(self) -> list[tuple[str, Role, str]]:
        named: list[tuple[str, Role, str]] = [(one.name, one.role, one.digest) for one in self._named.list_tokens()]
        return named if self._start_digest is None else [(OWNER, "admin", self._start_digest), *named]


class _Stream(NamedTuple):
    """An open WebSocket or event stream, in the task that runs it."""

    caller: str
    digest: str
    """Of its token."""


class Access:
    """The outermost ASGI application."""

    def __init__(
        self, app: App, names: ServerNames, tokens: TokenBook, connections: UnauthenticatedLimit, limits: ServerLimits
    ) -> None:
        self._app, self._names, self._tokens, self._connections = app, names, tokens, connections
        self._rates = RateLimit(limits.requests_per_second, limits.requests_per_second * _BURST_SECONDS)
        self._max_streams = limits.streams
        self._streams: dict[asyncio.Task[Any], _Stream] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        say = _add_headers(send)
        headers = Headers(scope=scope)
        try:
            self._check_source(scope, headers)
            token = self._read_token(scope, headers)
            caller = self._tokens.find_caller(token) if 0 < len(token) <= _MAX_TOKEN_CHARS else None
            self._check_rate(scope, caller)
        except ApiFailure as failure:
            await _refuse(failure, scope, receive, say)
            return
        if caller is not None:
            self._connections.admit(scope)
            scope[CALLER] = caller
        try:
            if _is_protected(scope["path"]):
                self._check_caller(scope, caller)
        except ApiFailure as failure:
            await _refuse_readably(failure, scope, receive, say)
            return
        if caller is not None and _is_stream(scope):
            await self._follow(_Stream(caller.name, self._tokens.digest(token)), scope, receive, say)
        else:
            await self._app(scope, receive, say)

    def _check_caller(self, scope: Scope, caller: ApiCaller | None) -> None:
        if caller is None:
            text = "The request needs a token that counts: Authorization: Bearer TOKEN"
            raise ApiFailure(401, "UNAUTHORIZED", text)
        if scope["path"] == MCP:
            check_role(caller, "operator")
        if _is_stream(scope) and self._count_streams(caller) >= self._max_streams:
            text = "This token has too many open streams. Close one."
            raise ApiFailure(429, "TOO_MANY", text, headers={"retry-after": "1"})

    def _check_source(self, scope: Scope, headers: Headers) -> None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._names.hosts:
            text = "The Host header does not name this server. Connect by its own address, or see serve --name."
            raise ApiFailure(421, "FORBIDDEN", text)
        if any(origin.lower() not in self._names.origins for origin in origins):
            raise ApiFailure(403, "FORBIDDEN", "The Origin of the request is foreign and is refused.")
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(name.lower() in _QUERY_TOKENS for name, _ in query):
            text = "A token in an address is refused. Make a new token, and send it as Authorization: Bearer TOKEN."
            raise ApiFailure(400, "INVALID_ARGUMENT", text)

    def _read_token(self, scope: Scope, headers: Headers) -> str:
        """The token of a request. Empty if it has none, or more than one."""
        given = headers.getlist("authorization")
        if given:
            scheme, _, token = given[0].partition(" ")
            return token.strip() if len(given) == 1 and scheme.lower() == "bearer" else ""
        token = unquote(cookie_parser(headers.get("cookie", "")).get(self._names.cookie, ""))
        is_safe = scope["type"] == "http" and scope["method"] in _SAFE
        if token and not is_safe and "origin" not in headers:
            text = "A request with the cookie needs an Origin header. A program sends Authorization: Bearer TOKEN."
            raise ApiFailure(403, "FORBIDDEN", text)
        return token

    def _check_rate(self, scope: Scope, caller: ApiCaller | None) -> None:
        address = (scope.get("client") or ("",))[0]
        if seconds := self._rates.take(address if caller is None else f"token {caller.name}"):
            text = "Too many requests. Wait a little."
            raise ApiFailure(429, "TOO_MANY", text, headers={"retry-after": str(ceil(seconds))})

    def _count_streams(self, caller: ApiCaller) -> int:
        return sum(stream.caller == caller.name for stream in self._streams.values())

    async def _follow(self, stream: _Stream, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs a stream until it ends, or its token is removed."""
        task = asyncio.current_task()
        assert task is not None
        self._streams[task] = stream
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if task in self._streams:  # the server ends
                raise
            task.uncancel()
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": Closing.UNAUTHORIZED})
        finally:
            self._streams.pop(task, None)

    async def watch(self) -> None:
        """Ends the streams of removed tokens, until it is cancelled."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            digests = {stream.digest for stream in self._streams.values()}
            removed = {digest for digest in digests if self._tokens.find_by_digest(digest) is None}
            for task in [task for task, stream in self._streams.items() if stream.digest in removed]:
                del self._streams[task]
                task.cancel()


def check_role(caller: ApiCaller, needed: Role) -> None:
    if ROLES.index(caller.role) < ROLES.index(needed):
        raise ApiFailure(403, "FORBIDDEN", f"This needs the role {needed}; the token {caller.name} is {caller.role}.")


def _is_protected(path: str) -> bool:
    """Whether a path needs a token. The files of the console do not."""
    return path not in _PUBLIC and path.startswith(_PROTECTED)


def _is_stream(scope: Scope) -> bool:
    """Whether a request stays open until its client goes."""
    if scope["type"] == "websocket":
        return True
    return scope["method"] == "GET" and (scope["path"] == MCP or scope["path"].endswith("/stream"))


def _add_headers(send: Send) -> Send:
    """Adds the security headers to the response, unless it has its own."""

    async def say(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.http.response.start"}:
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return say


def render_failure(failure: ApiFailure) -> Response:
    body = encode(ApiError(code=failure.code, message=failure.message, details=failure.details))
    response = Response(body, failure.status, failure.headers, media_type="application/json")
    if failure.status == HTTPStatus.UNAUTHORIZED:
        response.headers["www-authenticate"] = 'Bearer realm="handrail"'
    return response


async def _refuse(failure: ApiFailure, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers without reading the rest of the body."""
    response = render_failure(failure)
    response.headers["connection"] = "close"
    await response(scope, receive, send)


async def _refuse_readably(failure: ApiFailure, scope: Scope, receive: Receive, send: Send) -> None:
    """The same. A WebSocket is accepted and closed, as a page sees no other reason."""
    if scope["type"] == "http":
        await _refuse(failure, scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 4_000 + failure.status, "reason": failure.message[:120]})
