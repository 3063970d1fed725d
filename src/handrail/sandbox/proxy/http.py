"""Requests and answers of HTTP, read strictly."""

import re
from typing import NamedTuple, Protocol

from handrail.policy.network.hosts import HostPort, InvalidHost, parse_host_port, render_untrusted

# § [sandbox.proxy.request] Reads the head of a request to a proxy. Strict: what two programs could read in two ways
# § is refused. Pure: takes bytes and gives a request, or raises MalformedError.

_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\x00-\x08\x0a-\x1f\x7f]*)")
"""With the blanks around its value: who looked for them here would try every way to share them out."""
_VERSION = re.compile(r"HTTP/1\.[01]")
_LENGTH = re.compile(r"[0-9]{1,18}")
_URL = re.compile(r"http://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_AUTHORITY_END = re.compile(r"[/?#\\\s]")
_HTTP_PORT = 80
_OF_ONE_CONNECTION = frozenset(
    {
        *("connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("upgrade", "transfer-encoding", "content-length", "host"),
        *("via", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"),
    }
)
"""Fields that are not passed on: the proxy says itself what is true of its connection to the server."""


class MalformedError(Exception):
    """No request that can be read in one way only; says why, and what it names in the place of a host."""

    def __init__(self, reason: str, named: str = "", port: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.named = render_untrusted(named)
        self.port = port


class ProxyRequest(NamedTuple):
    """What a program asks for."""

    method: str
    target: HostPort | InvalidHost
    version: str
    path: str
    """What the server is asked for; empty where a tunnel is."""
    fields: tuple[tuple[str, str], ...]
    length: int | None
    """Bytes of the body; None where it comes in chunks."""

    @property
    def is_tunnel(self) -> bool:
        """Whether bytes are to be carried as they are."""
        return self.method == "CONNECT"


def parse_request(head: bytes) -> ProxyRequest:
    """Reads everything up to the empty line, which is not part of it."""
    first, *rest = _lines(head)
    words = first.split(" ")
    if len(words) != 3 or not _METHOD.fullmatch(words[0]) or not _VERSION.fullmatch(words[2]):
        raise MalformedError("it is no HTTP/1 request", find_named_host(first))
    method, named, version = words
    try:
        return _request(method, named, version, _fields(rest))
    except MalformedError as error:
        raise MalformedError(error.reason, error.named or find_named_host(first), error.port) from None


def find_named_host(first: str) -> str:
    """What the first line of a request names in the place of a host, if it is like one. No path, query or password: it
    is written down, and they may be secrets."""
    method, _, rest = first.partition(" ")
    named = rest.partition(" ")[0]
    after = named if method == "CONNECT" else named.partition("://")[2]
    return _AUTHORITY_END.split(after, maxsplit=1)[0].rpartition("@")[2]


def build_forwarded_head(request: ProxyRequest, target: HostPort) -> bytes:
    """The head as the server gets it: one request, on a connection of its own."""
    host = target.spelled.removesuffix(f":{_HTTP_PORT}") if target.port == _HTTP_PORT else target.spelled
    dropped = _OF_ONE_CONNECTION | _named_by_connection(request.fields)
    lines = [f"{request.method} {request.path} {request.version}", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in request.fields if name.lower() not in dropped]
    if request.length is None:
        lines.append("Transfer-Encoding: chunked")
    elif request.length or any(name.lower() == "content-length" for name, _ in request.fields):
        lines.append(f"Content-Length: {request.length}")
    return ("\r\n".join((*lines, "Connection: close")) + "\r\n\r\n").encode("latin-1")


def _lines(head: bytes) -> list[str]:
    lines = head.decode("latin-1").split("\r\n")
    if any("\r" in line or "\n" in line for line in lines):
        raise MalformedError("a line of it does not end as lines of HTTP do", find_named_host(lines[0]))
    return lines


def _fields(lines: list[str]) -> tuple[tuple[str, str], ...]:
    fields: list[tuple[str, str]] = []
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise MalformedError("a header of it is none, or goes on in the next line")
        fields.append((field[1], field[2].strip(" \t")))
    return tuple(fields)


def _request(method: str, named: str, version: str, fields: tuple[tuple[str, str], ...]) -> ProxyRequest:
    length = _length(fields, version)
    host = _only(fields, "host")
    if method == "CONNECT":
        if length != 0:
            raise MalformedError("a tunnel has no body")
        target, path = parse_host_port(named), ""
    else:
        target, path = _in_url(named)
        if host is None and version == "HTTP/1.1":
            raise MalformedError("it has no Host header")
    if host is not None and isinstance(target, HostPort) and not _same_host(host, target):
        reason = f"its Host header ({render_untrusted(host)}) is not the host that it asks for"
        raise MalformedError(reason, target.host, target.port)
    return ProxyRequest(method, target, version, path, fields, length)


def _in_url(url: str) -> tuple[HostPort | InvalidHost, str]:
    found = _URL.fullmatch(url)
    if found is None:
        if _ANY_SCHEME.match(url) and not url.lower().startswith("http://"):
            raise MalformedError("only http:// can be asked for by name; everything else goes by CONNECT")
        raise MalformedError("it names no host: a proxy is asked for a whole http:// address")
    authority, rest = found[1], found[2] or "/"
    if "@" in authority:
        raise MalformedError("its address holds a user name or password", authority.rpartition("@")[2])
    if any(not "!" <= one <= "~" for one in rest):
        raise MalformedError("its address holds what no address does", authority)
    return parse_host_port(_with_port(authority, _HTTP_PORT)), rest if rest.startswith("/") else f"/{rest}"


def _same_host(host: str, target: HostPort) -> bool:
    named = parse_host_port(_with_port(host, target.port))
    return isinstance(named, HostPort) and (named.host, named.port) == (target.host, target.port)


def _with_port(authority: str, port: int) -> str:
    """With the port that is meant where it names none; a colon in brackets names none."""
    return authority if ":" in authority.rpartition("]")[2] else f"{authority}:{port}"


def _length(fields: tuple[tuple[str, str], ...], version: str) -> int | None:
    length, encoding = _only(fields, "content-length"), _only(fields, "transfer-encoding")
    if encoding is not None:
        if length is not None or encoding.lower() != "chunked" or version != "HTTP/1.1":
            raise MalformedError("the length of its body can be read in two ways")
        return None
    if length is None:
        return 0
    if not _LENGTH.fullmatch(length):
        raise MalformedError("the length of its body is no number")
    return int(length)


def _only(fields: tuple[tuple[str, str], ...], wanted: str) -> str | None:
    found = [value for name, value in fields if name.lower() == wanted]
    if len(found) > 1:
        raise MalformedError(f"it has {wanted} more than once")
    return found[0] if found else None


def _named_by_connection(fields: tuple[tuple[str, str], ...]) -> frozenset[str]:
    listed = ",".join(value for name, value in fields if name.lower() == "connection")
    return frozenset(name.strip().lower() for name in listed.split(","))


# § [sandbox.proxy.bodies] How much of what a program sends belongs to its one request: the rest is never passed on.

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?\r\n")
_MAX_LINE_BYTES = 4096


class RequestBody(Protocol):
    """Takes what comes, gives what is to be passed on."""

    done: bool

    def feed(self, data: bytes) -> bytes:
        """MalformedError where it cannot be read."""
        ...


def build_body(request: ProxyRequest) -> RequestBody:
    """The body that a request says it has."""
    if request.is_tunnel:
        return TunnelBody()
    return ChunkedBody() if request.length is None else SizedBody(request.length)


class TunnelBody:
    """A tunnel: it ends when one of both sides does."""

    done = False

    def feed(self, data: bytes) -> bytes:
        """All of it."""
        return data


class SizedBody:
    """A body of so many bytes."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def feed(self, data: bytes) -> bytes:
        """What belongs to it."""
        own = data[: self._left]
        self._left -= len(own)
        self.done = self._left == 0
        return own


class ChunkedBody:
    """A body in pieces, each after its size; written anew, without what could be hidden between them."""

    def __init__(self) -> None:
        self._waiting = b""
        self._left = 0
        """Bytes of the present piece that are still to come."""
        self._after_piece = False
        self._last = False
        self.done = False

    def feed(self, data: bytes) -> bytes:
        """The pieces that are complete, and the part that has come of one that is not."""
        self._waiting += data
        given: list[bytes] = []
        while not self.done and (step := self._step()) is not None:
            given.append(step)
        return b"".join(given)

    def _step(self) -> bytes | None:
        """One step further; None where more must come first."""
        if self._left:
            return self._piece()
        if self._last:
            return self._trailer()
        if self._after_piece:
            return self._end_of_piece()
        return self._size()

    def _size(self) -> bytes | None:
        found = _SIZE.match(self._waiting)
        if found is None:
            if b"\n" in self._waiting or len(self._waiting) > _MAX_LINE_BYTES:
                raise MalformedError("the size of a chunk is no number")
            return None
        self._waiting = self._waiting[found.end() :]
        self._left = int(found[1], 16)
        self._last = not self._left
        return b"" if self._last else b"%x\r\n" % self._left

    def _piece(self) -> bytes | None:
        piece, self._waiting = self._waiting[: self._left], self._waiting[self._left :]
        self._left -= len(piece)
        self._after_piece = not self._left
        return piece or None

    def _end_of_piece(self) -> bytes | None:
        if len(self._waiting) < 2:
            return None
        if not self._waiting.startswith(b"\r\n"):
            raise MalformedError("a chunk is longer than its size")
        self._waiting, self._after_piece = self._waiting[2:], False
        return b"\r\n"

    def _trailer(self) -> bytes | None:
        """Headers after the last piece are not passed on."""
        line, newline, rest = self._waiting.partition(b"\r\n")
        if not newline:
            if len(self._waiting) > _MAX_LINE_BYTES:
                raise MalformedError("what follows the last chunk has no end")
            return None
        self._waiting = rest
        self.done = not line
        return b"0\r\n\r\n" if self.done else b""


# § [sandbox.proxy.answers] What the proxy says to a program that it does not connect.

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"

MALFORMED = 400
REFUSED = 403
NOT_REACHED = 502
TOO_SLOW = 504


def build_response(status: int, reason: str) -> bytes:
    """A whole response. The reason is also in its first line, which is all that many programs show of it."""
    said = "".join(one if one.isascii() and one.isprintable() else render_untrusted(one) for one in reason)
    body = f"handrail: {said}\n".encode("ascii", "replace")
    head = (
        f"HTTP/1.1 {status} handrail: {said}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii", "replace") + body
