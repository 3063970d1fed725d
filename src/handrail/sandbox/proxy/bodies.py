"""How much of what a program sends belongs to its one request: the rest is never passed on."""

import re
from typing import Protocol

from handrail.sandbox.proxy.request import MalformedError, ProxyRequest

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
