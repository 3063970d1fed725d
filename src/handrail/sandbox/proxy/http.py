"""The HTTP of the proxy, parsed strictly: a request that two programs could read in two ways is refused."""

import re
from collections.abc import Generator, Iterator
from typing import NamedTuple

from handrail.policy.network.hosts import HostPort, InvalidHost, parse_host_port, render_untrusted

_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\x00-\x08\x0a-\x1f\x7f]*)")
"""With the blanks around its value: a pattern for them could take quadratic time."""
_VERSION = re.compile(r"HTTP/1\.[01]")
_LENGTH = re.compile(r"[0-9]{1,18}")
_URL = re.compile(r"http://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_AUTHORITY_END = re.compile(r"[/?#\\\s]")
_HTTP_PORT = 80
_HOP_BY_HOP = frozenset(
    {
        *("connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("upgrade", "transfer-encoding", "content-length", "host"),
        *("via", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"),
    }
)
"""Headers of one connection. The proxy writes its own."""
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
MALFORMED = 400
REFUSED = 403
NOT_REACHED = 502
TOO_SLOW = 504
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?\r\n")
_MAX_LINE_BYTES = 4096


class MalformedError(Exception):
    """A request that is refused, with the reason and what it names as its host."""

    def __init__(self, reason: str, named: str = "", port: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.named = render_untrusted(named)
        self.port = port


class ProxyRequest(NamedTuple):
    method: str
    target: HostPort | InvalidHost
    version: str
    path: str
    """Empty for a tunnel."""
    fields: tuple[tuple[str, str], ...]
    length: int | None
    """Bytes of the body. None if it comes in chunks."""

    @property
    def is_tunnel(self) -> bool:
        return self.method == "CONNECT"


def parse_request(head: bytes) -> ProxyRequest:
    """Parse a head, without its empty line."""
    first, *rest = _split_lines(head)
    words = first.split(" ")
    if len(words) != 3 or not _METHOD.fullmatch(words[0]) or not _VERSION.fullmatch(words[2]):
        raise MalformedError("it is not an HTTP/1 request", find_named_host(first))
    method, named, version = words
    try:
        return _build_request(method, named, version, _parse_fields(rest))
    except MalformedError as error:
        raise MalformedError(error.reason, error.named or find_named_host(first), error.port) from None


def find_named_host(first: str) -> str:
    """What a request line names as its host. No path, query or password: they may be secrets, and it is logged."""
    method, _, rest = first.partition(" ")
    named = rest.partition(" ")[0]
    after = named if method == "CONNECT" else named.partition("://")[2]
    return _AUTHORITY_END.split(after, maxsplit=1)[0].rpartition("@")[2]


def build_forwarded_head(request: ProxyRequest, target: HostPort) -> bytes:
    """The head for the server: one request on its own connection."""
    host = target.spelled.removesuffix(f":{_HTTP_PORT}") if target.port == _HTTP_PORT else target.spelled
    dropped = _HOP_BY_HOP | _list_connection_fields(request.fields)
    lines = [f"{request.method} {request.path} {request.version}", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in request.fields if name.lower() not in dropped]
    if request.length is None:
        lines.append("Transfer-Encoding: chunked")
    elif request.length or any(name.lower() == "content-length" for name, _ in request.fields):
        lines.append(f"Content-Length: {request.length}")
    return ("\r\n".join((*lines, "Connection: close")) + "\r\n\r\n").encode("latin-1")


def _split_lines(head: bytes) -> list[str]:
    lines = head.decode("latin-1").split("\r\n")
    if any("\r" in line or "\n" in line for line in lines):
        raise MalformedError("one of its lines has a wrong line end", find_named_host(lines[0]))
    return lines


def _parse_fields(lines: list[str]) -> tuple[tuple[str, str], ...]:
    fields: list[tuple[str, str]] = []
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise MalformedError("a header is malformed, or continues in the next line")
        fields.append((field[1], field[2].strip(" \t")))
    return tuple(fields)


def _build_request(method: str, named: str, version: str, fields: tuple[tuple[str, str], ...]) -> ProxyRequest:
    length = _parse_length(fields, version)
    host = _find_single(fields, "host")
    if method == "CONNECT":
        if length != 0:
            raise MalformedError("a tunnel has no body")
        target, path = parse_host_port(named), ""
    else:
        target, path = _parse_url(named)
        if host is None and version == "HTTP/1.1":
            raise MalformedError("it has no Host header")
    if host is not None and isinstance(target, HostPort) and not _is_same_host(host, target):
        reason = f"its Host header ({render_untrusted(host)}) is not the host that it asks for"
        raise MalformedError(reason, target.host, target.port)
    return ProxyRequest(method, target, version, path, fields, length)


def _parse_url(url: str) -> tuple[HostPort | InvalidHost, str]:
    found = _URL.fullmatch(url)
    if found is None:
        if _ANY_SCHEME.match(url) and not url.lower().startswith("http://"):
            raise MalformedError("only http:// addresses are allowed; use CONNECT for others")
        raise MalformedError("it names no host: a proxy needs a full http:// address")
    authority, rest = found[1], found[2] or "/"
    if "@" in authority:
        raise MalformedError("its address has a user name or password", authority.rpartition("@")[2])
    if any(not "!" <= one <= "~" for one in rest):
        raise MalformedError("its address has an invalid character", authority)
    return parse_host_port(_add_port(authority, _HTTP_PORT)), rest if rest.startswith("/") else f"/{rest}"


def _is_same_host(host: str, target: HostPort) -> bool:
    named = parse_host_port(_add_port(host, target.port))
    return isinstance(named, HostPort) and (named.host, named.port) == (target.host, target.port)


def _add_port(authority: str, port: int) -> str:
    """Add the default port if there is none. A colon in brackets is not one."""
    return authority if ":" in authority.rpartition("]")[2] else f"{authority}:{port}"


def _parse_length(fields: tuple[tuple[str, str], ...], version: str) -> int | None:
    length, encoding = _find_single(fields, "content-length"), _find_single(fields, "transfer-encoding")
    if encoding is not None:
        if length is not None or encoding.lower() != "chunked" or version != "HTTP/1.1":
            raise MalformedError("the length of its body is ambiguous")
        return None
    if length is None:
        return 0
    if not _LENGTH.fullmatch(length):
        raise MalformedError("the length of its body is not a number")
    return int(length)


def _find_single(fields: tuple[tuple[str, str], ...], wanted: str) -> str | None:
    found = [value for name, value in fields if name.lower() == wanted]
    if len(found) > 1:
        raise MalformedError(f"it has {wanted} more than once")
    return found[0] if found else None


def _list_connection_fields(fields: tuple[tuple[str, str], ...]) -> frozenset[str]:
    listed = ",".join(value for name, value in fields if name.lower() == "connection")
    return frozenset(name.strip().lower() for name in listed.split(","))


# Request bodies. Bytes after the end of a body are never passed on.


class TunnelBody:
    """A tunnel, which has no end of its own."""

    done = False

    def feed(self, data: bytes) -> bytes:
        return data


class SizedBody:
    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def feed(self, data: bytes) -> bytes:
        own = data[: self._left]
        self._left -= len(own)
        self.done = self._left == 0
        return own


class _ChunkedBody:
    """A chunked body, encoded anew: nothing can be hidden between its chunks."""

    def __init__(self) -> None:
        self._pending = b""
        self._steps = self._parse()
        self.done = False

    def feed(self, data: bytes) -> bytes:
        self._pending += data
        passed: list[bytes] = []
        while not self.done and (step := next(self._steps)) is not None:
            passed.append(step)
        return b"".join(passed)

    def _parse(self) -> Iterator[bytes | None]:
        """Yields the bytes to pass on, or None if more input is needed."""
        while size := (yield from self._parse_size()):
            yield b"%x\r\n" % size
            while size:
                chunk, self._pending = self._pending[:size], self._pending[size:]
                size -= len(chunk)
                yield chunk or None
            while len(self._pending) < 2:
                yield None
            if not self._pending.startswith(b"\r\n"):
                raise MalformedError("a chunk is longer than its size")
            self._pending = self._pending[2:]
            yield b"\r\n"
        while not self._pending.startswith(b"\r\n"):  # headers after the last chunk are dropped
            _, newline, rest = self._pending.partition(b"\r\n")
            if newline:
                self._pending = rest
                continue
            if len(self._pending) > _MAX_LINE_BYTES:
                raise MalformedError("the trailer after the last chunk is too long")
            yield None
        self.done = True
        yield b"0\r\n\r\n"

    def _parse_size(self) -> Generator[None, None, int]:
        while (found := _CHUNK_SIZE.match(self._pending)) is None:
            if b"\n" in self._pending or len(self._pending) > _MAX_LINE_BYTES:
                raise MalformedError("the size of a chunk is not a number")
            yield None
        self._pending = self._pending[found.end() :]
        return int(found[1], 16)


RequestBody = TunnelBody | SizedBody | _ChunkedBody
"""Selects the bytes to pass on. `feed` raises MalformedError if they cannot be parsed."""


def build_body(request: ProxyRequest) -> RequestBody:
    if request.is_tunnel:
        return TunnelBody()
    return _ChunkedBody() if request.length is None else SizedBody(request.length)


def build_response(status: int, reason: str) -> bytes:
    """An error response. The reason is also in its status line, which many programs show alone."""
    text = "".join(one if one.isascii() and one.isprintable() else render_untrusted(one) for one in reason)
    body = f"handrail: {text}\n".encode("ascii", "replace")
    head = (
        f"HTTP/1.1 {status} handrail: {text}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii", "replace") + body
