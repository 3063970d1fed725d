"""Carries bytes between a program and a host, both ways at once, with a little of each in memory."""

import contextlib
import socket

from handrail.sandbox.proxy.bodies import RequestBody, SizedBody, TunnelBody
from handrail.sandbox.proxy.waiting import READABLE, WRITABLE, Poller, TooSlowError

_PIECE_BYTES = 1 << 16
_SECONDS_OF_SILENCE = 300.0


class _RelayPipe:
    """One direction: what was read from one side and is not yet written to the other."""

    def __init__(self, source: socket.socket, sink: socket.socket, body: RequestBody) -> None:
        self._source = source
        self._sink = sink
        self._body = body
        self._held = memoryview(b"")
        self._ended = False
        """Whether nothing more is read."""
        self.over = False
        """Whether everything that was read is written, and the other side knows that no more will come."""

    def wanted(self) -> tuple[socket.socket, int] | None:
        """What this direction waits for, if anything."""
        if self._held:
            return self._sink, WRITABLE
        return None if self._ended else (self._source, READABLE)

    def take(self, data: bytes) -> None:
        """Keeps what belongs to the body, to be written; what comes after it is dropped."""
        self._held = memoryview(b"" if self._body.done else self._body.feed(data))

    def move(self, ready: set[socket.socket]) -> None:
        """One step, where a socket is ready for it."""
        if self._held and self._sink in ready:
            self._write()
        elif not self._held and not self._ended and self._source in ready:
            self._read()
        if self._ended and not self._held and not self.over:
            self._pass_end()

    def _read(self) -> None:
        try:
            data = self._source.recv(_PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError:  # broken off; what came before is still passed on
            data = b""
        if data:
            self.take(data)
        else:
            self._ended = True

    def _write(self) -> None:
        try:
            self._held = self._held[self._sink.send(self._held) :]
        except BlockingIOError:
            return
        except OSError:  # nobody is there to take it
            self._held = memoryview(b"")
            if isinstance(self._body, TunnelBody):
                self._ended = True
            else:
                self._body = SizedBody(0)  # a host may have answered before it has read everything

    def _pass_end(self) -> None:
        self.over = True
        with contextlib.suppress(OSError):  # it may be gone
            self._sink.shutdown(socket.SHUT_WR)


def relay(waiting: Poller, client: socket.socket, server: socket.socket, body: RequestBody, first: bytes) -> None:
    """Carries until both sides have ended, or the answer where it is one request; or until nothing has moved for long.
    `first` was read together with the head."""
    up, down = _RelayPipe(client, server, body), _RelayPipe(server, client, TunnelBody())
    is_tunnel = isinstance(body, TunnelBody)
    up.take(first)
    while not down.over or (is_tunnel and not up.over):
        wanted: dict[socket.socket, int] = {}
        for found in (up.wanted(), down.wanted()):
            if found:
                wanted[found[0]] = wanted.get(found[0], 0) | found[1]
        try:
            ready = waiting.poll(wanted, _SECONDS_OF_SILENCE)
        except TooSlowError:
            return
        up.move(ready)
        down.move(ready)
