"""Lets in requests to a loopback address, from no foreign page, with the token.

A page in a browser can send requests to this machine. By a name that it controls (DNS rebinding) it can even read the
answers. Such a request carries a foreign Host or Origin. So these are checked first, before the token and long before
the body. There is no answer to a preflight request: no page is let in.
"""

import hmac
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple

from handrail.mcp.protocol import is_modern
from handrail.protocol.errors import UsageError
from handrail.protocol.text import render_value

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"
_USE = "use 127.0.0.1:PORT, localhost:PORT or [::1]:PORT; port 0 takes any free port. Nothing was started."


class Address(NamedTuple):
    """An address of this machine with a port."""

    host: str
    port: int

    def listen(self) -> socket.socket:
        """Raises UsageError if no socket can listen there."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        # asyncio disables Nagle's algorithm only on a socket that names TCP. Otherwise each answer takes 40 ms more.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(self)
            listening.listen(1024)  # the system may lower it (net.core.somaxconn)
        except OSError as error:
            listening.close()
            raise UsageError(f"{self.name} cannot be listened on: {error.strerror}; {_USE}") from None
        return listening

    @property
    def is_loopback(self) -> bool:
        ip = _parse_ip(self.host)
        return ip is not None and ip.is_loopback

    @property
    def name(self) -> str:
        """The host and port of a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def names(self) -> frozenset[str]:
        """All loopback names with the port. A request may use any of them."""
        hosts = ("localhost", "127.0.0.1", "[::1]", self.name.rpartition(":")[0])
        return frozenset((*(f"{host}:{self.port}" for host in hosts), *(hosts if self.port == 80 else ())))


def parse_address(text: str, option: str = "--http", *, loopback: bool = True) -> Address:
    """Raises UsageError for a text that is no address. `loopback`: also for one that other machines reach."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise UsageError(f"{option} {render_value(text)} is not HOST:PORT; {_USE}")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if bare in {"", "localhost"}:
        return Address("127.0.0.1", int(port))
    address = Address(bare, int(port))
    if (":" in bare) != (bare != host) or not (address.is_loopback if loopback else _parse_ip(bare)):
        why = "a loopback address: anyone who reaches the server can change files and run commands"
        raise UsageError(
            f"{option} {render_value(text)} is not {why if loopback else 'an IP address with a port'}; {_USE}"
        )
    return address


def _parse_ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


class HttpRefusal(NamedTuple):
    status: int
    text: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    content_type: bytes = b"text/plain; charset=utf-8"


class Guard:
    """The outermost ASGI application."""

    def __init__(self, app: App, names: frozenset[str], token: str) -> None:
        self._app = app
        self._hosts = frozenset(name.encode() for name in names)
        self._origins = frozenset(b"http://" + host for host in self._hosts)
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self.check(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await send_refusal(refusal, send)

    def check(self, scope: Scope) -> HttpRefusal | None:
        """None lets a request in."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts, origins, tokens = (_list_values(headers, name) for name in (b"host", b"origin", b"authorization"))
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            text = "The Host header does not name this server: connect by its loopback address."
            return HttpRefusal(421, text)
        if any(origin.lower() not in self._origins for origin in origins):
            return HttpRefusal(403, "The Origin of the request is foreign and is refused.")
        if len(tokens) != 1 or not self._is_token(tokens[0]):
            text = "The request needs the token that the server printed at its start: Authorization: Bearer TOKEN"
            return HttpRefusal(401, text, ((b"www-authenticate", b'Bearer realm="handrail"'),))
        if scope["path"] != PATH:
            return HttpRefusal(404, f"Nothing is at this address; the server is at {PATH}.")
        return None

    def _is_token(self, value: bytes) -> bool:
        scheme, _, token = value.partition(b" ")
        is_equal = hmac.compare_digest(token.strip(), self._token)
        return scheme.lower() == b"bearer" and is_equal


def find_header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of this name."""
    return next((value for key, value in scope["headers"] if key == name), None)


def is_modern_request(scope: Scope) -> bool:
    """Whether a request is of a version without a handshake."""
    return is_modern((find_header(scope, b"mcp-protocol-version") or b"").decode("latin-1"))


async def send_refusal(refusal: HttpRefusal, send: Send) -> None:
    """Answers without reading the rest of the body."""
    body = refusal.text.encode() + b"\n"
    content = ((b"content-type", refusal.content_type), (b"content-length", str(len(body)).encode()))
    headers = [*content, (b"connection", b"close"), *refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _list_values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key.lower() == name]
