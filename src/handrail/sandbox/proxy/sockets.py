"""Relays between sockets, with deadlines."""

import contextlib
import errno
import os
import select
import socket
import time

from handrail.sandbox.proxy.http import RequestBody, SizedBody, TunnelBody

# § [sandbox.proxy.waiting] Waits for sockets, as long as there is time and the proxy is not closed.

READABLE = select.POLLIN
WRITABLE = select.POLLOUT


class ClosedError(Exception):
    """The proxy is closed: whoever waits lets go."""


class TooSlowError(Exception):
    """Nothing happened in time."""


class Deadline:
    """A moment that is so many seconds away."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then; never below zero."""
        return max(0.0, self._at - time.monotonic())


class Poller:
    """Waits, in any number of threads, until something is in a pipe: nobody ever takes it out again."""

    def __init__(self) -> None:
        self._stop, self._tell = os.pipe()
        self._ended = False

    def end(self) -> None:
        """Wakes everybody who waits; nobody can wait any more."""
        self._ended = True
        os.write(self._tell, b"!")

    def close(self) -> None:
        """Lets go of the pipe; whoever shares it, having been forked, has it still."""
        self._ended = True
        os.close(self._stop)
        os.close(self._tell)

    def poll(self, wanted: dict[socket.socket, int], seconds: float) -> set[socket.socket]:
        """Those of the sockets that are ready, in one of the ways they are waited for or by an error."""
        if self._ended:
            raise ClosedError
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        numbers = {one.fileno(): one for one in wanted}
        for one, events in wanted.items():
            poll.register(one, events)
        found = [number for number, _ in poll.poll(seconds * 1000)]
        if self._stop in found:
            raise ClosedError
        if not found:
            raise TooSlowError
        return {numbers[number] for number in found}

    def sleep(self, seconds: float) -> None:
        """Waits for nothing but the end of the proxy."""
        try:
            self.poll({}, seconds)
        except TooSlowError:
            return

    def connect(self, connection: socket.socket, address: tuple[str, int], deadline: Deadline) -> None:
        """Connects; OSError where that fails."""
        error = connection.connect_ex(address)
        if error == errno.EINPROGRESS:
            self.poll({connection: WRITABLE}, deadline.left)
            error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))

    def send(self, connection: socket.socket, data: bytes, deadline: Deadline) -> None:
        """Sends all of it; OSError where nobody takes it."""
        left = memoryview(data)
        while left:
            self.poll({connection: WRITABLE}, deadline.left)
            left = left[connection.send(left) :]

    def receive(self, connection: socket.socket, most: int, deadline: Deadline) -> bytes:
        """Some bytes as soon as there are any; none at the end."""
        self.poll({connection: READABLE}, deadline.left)
        return connection.recv(most)


# § [sandbox.proxy.relaying] Carries bytes between a program and a host, both ways at once, with a little of each in
# § memory.

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
