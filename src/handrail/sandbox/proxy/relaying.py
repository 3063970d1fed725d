"""Carries bytes between a program and a host, both ways at once, with a little of each in memory."""

import socket

from handrail.sandbox.proxy.bodies import Body, Everything
from handrail.sandbox.proxy.waiting import READABLE, WRITABLE, TooSlowError, Waiting

_PIECE = 1 << 16
_SECONDS_OF_SILENCE = 300.0


class _Way:
    """One direction: what was read from one side and is not yet written to the other."""

    def __init__(self, source: socket.socket, sink: socket.socket, body: Body, *, passes_end: bool) -> None:
        self._source = source
        self._sink = sink
        self._body = body
        self._passes_end = passes_end
        """Whether the end of one side is the end for the other: not of a program that waits for its answer."""
        self._held = memoryview(b"")
        self._ended = body.done
        """Whether nothing more is read."""
        self.over = False
        """Whether everything that was read is written, and the other side knows that no more will come."""

    def wanted(self) -> tuple[socket.socket, int] | None:
        """What this direction waits for, if anything."""
        if self._held:
            return self._sink, WRITABLE
        return None if self._ended else (self._source, READABLE)

    def take(self, data: bytes) -> None:
        """Keeps what belongs to this direction, to be written."""
        self._held = memoryview(self._body.take(data))
        self._ended = self._body.done

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
            data = self._source.recv(_PIECE)
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
            self._held, self._ended = memoryview(b""), True

    def _pass_end(self) -> None:
        self.over = True
        if self._passes_end:
            try:
                self._sink.shutdown(socket.SHUT_WR)
            except OSError:
                return  # it is gone


def relay(waiting: Waiting, client: socket.socket, server: socket.socket, body: Body, first: bytes) -> None:
    """Carries until both sides have ended; until the host has, where there was one request; or until nothing has moved
    for long. `first` was read together with the head."""
    is_tunnel = isinstance(body, Everything)
    up = _Way(client, server, body, passes_end=is_tunnel)
    down = _Way(server, client, Everything(), passes_end=True)
    if first and not body.done:
        up.take(first)
    while not (down.over and (up.over or not is_tunnel)):
        wanted: dict[socket.socket, int] = {}
        for found in (up.wanted(), down.wanted()):
            if found:
                wanted[found[0]] = wanted.get(found[0], 0) | found[1]
        try:
            ready = waiting.until(wanted, _SECONDS_OF_SILENCE)
        except TooSlowError:
            return
        up.move(ready)
        down.move(ready)
