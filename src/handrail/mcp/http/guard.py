"""Who is let in: requests to a name of this machine, from no foreign page, with the token.

A page in a browser can send requests to this machine, and by a name that it controls (DNS rebinding) even read the
answers. Such a request carries a foreign Host or Origin, so these are looked at first, before the token and long before
the body. There is no answer to a preflight request: no page is meant to be let in.
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from handrail.mcp.versions import is_modern

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"


class HttpRefusal(NamedTuple):
    """An answer that is no."""

    status: int
    text: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    kind: bytes = b"text/plain; charset=utf-8"


class Guard:
    """Stands before the server."""

    def __init__(self, app: App, names: frozenset[str], token: str) -> None:
        self._app = app
        self._hosts = frozenset(name.encode() for name in names)
        self._origins = frozenset(b"http://" + host for host in self._hosts)
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request through, or answers it."""
        refusal = self.refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await send_refusal(refusal, send)

    def refusal(self, scope: Scope) -> HttpRefusal | None:
        """Why a request is not let through."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts, origins, given = (_values(headers, name) for name in (b"host", b"origin", b"authorization"))
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return HttpRefusal(
                421, "The Host of the request is no name of this server: connect by its loopback address."
            )
        if any(origin.lower() not in self._origins for origin in origins):
            return HttpRefusal(403, "The Origin of the request is foreign: pages of others are not let in.")
        if len(given) != 1 or not self._is_token(given[0]):
            text = "A token is needed, as the server said when it started: Authorization: Bearer TOKEN"
            return HttpRefusal(401, text, ((b"www-authenticate", b'Bearer realm="handrail"'),))
        if scope["path"] != PATH:
            return HttpRefusal(404, f"There is nothing here; the server is at {PATH}.")
        return None

    def _is_token(self, given: bytes) -> bool:
        scheme, _, token = given.partition(b" ")
        same = hmac.compare_digest(token.strip(), self._token)
        return scheme.lower() == b"bearer" and same


def find_header(scope: Scope, name: bytes) -> bytes | None:
    """What a request says, where it says that; the first, where it says more."""
    return next((value for key, value in scope["headers"] if key == name), None)


def is_modern_request(scope: Scope) -> bool:
    """Whether a request is of a version without a handshake."""
    return is_modern((find_header(scope, b"mcp-protocol-version") or b"").decode("latin-1"))


async def send_refusal(refusal: HttpRefusal, send: Send) -> None:
    """Says no."""
    body = refusal.text.encode() + b"\n"
    plain = ((b"content-type", refusal.kind), (b"content-length", str(len(body)).encode()))
    # What is left of the body is not waited for.
    headers = [*plain, (b"connection", b"close"), *refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key.lower() == name]
