"""A relay between sockets, with deadlines."""

import contextlib
import errno
import os
import select
import socket
import time

from handrail.sandbox.proxy.http import RequestBody, SizedBody, TunnelBody

READABLE = select.POLLIN
WRITABLE = select.POLLOUT
_PIECE_BYTES = 1 << 16
_SECONDS_OF_SILENCE = 300.0


class ClosedError(Exception):
    """The proxy is closed."""


class TooSlowError(Exception):
    """Nothing happened in time."""


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self._at - time.monotonic())


class Poller:
    """Waits for sockets in any number of threads. An unread byte in a pipe ends all waits."""

    def __init__(self) -> None:
        self._stop, self._wake = os.pipe()
        self._ended = False

    def end(self) -> None:
        """Wake all threads with ClosedError."""
        self._ended = True
        os.write(self._wake, b"!")

    def close(self) -> None:
        """Close the pipe. A forked process keeps its copy."""
        self._ended = True
        os.close(self._stop)
        os.close(self._wake)

    def poll(self, interests: dict[socket.socket, int], seconds: float) -> set[socket.socket]:
        """The sockets that are ready or have an error."""
        if self._ended:
            raise ClosedError
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        numbers = {one.fileno(): one for one in interests}
        for one, events in interests.items():
            poll.register(one, events)
        found = [number for number, _ in poll.poll(seconds * 1000)]
        if self._stop in found:
            raise ClosedError
        if not found:
            raise TooSlowError
        return {numbers[number] for number in found}

    def sleep(self, seconds: float) -> None:
        """Pause, unless the proxy is closed."""
        try:
            self.poll({}, seconds)
        except TooSlowError:
            return

    def connect(self, connection: socket.socket, address: tuple[str, int], deadline: Deadline) -> None:
        error = connection.connect_ex(address)
        if error == errno.EINPROGRESS:
            self.poll({connection: WRITABLE}, deadline.left)
            error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))

    def send(self, connection: socket.socket, data: bytes, deadline: Deadline) -> None:
        left = memoryview(data)
        while left:
            self.poll({connection: WRITABLE}, deadline.left)
            left = left[connection.send(left) :]

    def receive(self, connection: socket.socket, most: int, deadline: Deadline) -> bytes:
        """The next bytes. Empty at the end."""
        self.poll({connection: READABLE}, deadline.left)
        return connection.recv(most)


def relay(poller: Poller, client: socket.socket, server: socket.socket, body: RequestBody, first: bytes) -> None:
    """Relay until both sides have ended. A single request ends with its response, and silence ends all.

    `first` was read together with the head.
    """
    up, down = _RelayPipe(client, server, body), _RelayPipe(server, client, TunnelBody())
    is_tunnel = isinstance(body, TunnelBody)
    up.take(first)
    while not down.over or (is_tunnel and not up.over):
        interests: dict[socket.socket, int] = {}
        for found in (up.find_interest(), down.find_interest()):
            if found:
                interests[found[0]] = interests.get(found[0], 0) | found[1]
        try:
            ready = poller.poll(interests, _SECONDS_OF_SILENCE)
        except TooSlowError:
            return
        up.move(ready)
        down.move(ready)


class _RelayPipe:
    def __init__(self, source: socket.socket, sink: socket.socket, body: RequestBody) -> None:
        self._source = source
        self._sink = sink
        self._body = body
        self._held = memoryview(b"")
        """Read from the source and not yet written to the sink."""
        self._ended = False
        """Whether nothing more is read."""
        self.over = False
        """Whether everything is written and the sink was told the end."""

    def find_interest(self) -> tuple[socket.socket, int] | None:
        """The socket and event that this direction waits for."""
        if self._held:
            return self._sink, WRITABLE
        return None if self._ended else (self._source, READABLE)

    def take(self, data: bytes) -> None:
        """Hold the bytes of the body. Bytes after its end are dropped."""
        self._held = memoryview(b"" if self._body.done else self._body.feed(data))

    def move(self, ready: set[socket.socket]) -> None:
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
        except OSError:  # broken off: earlier bytes are still passed on
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
        except OSError:  # the sink is gone
            self._held = memoryview(b"")
            if isinstance(self._body, TunnelBody):
                self._ended = True
            else:
                self._body = SizedBody(0)  # a host may have answered before it has read everything

    def _pass_end(self) -> None:
        self.over = True
        with contextlib.suppress(OSError):  # it may be gone
            self._sink.shutdown(socket.SHUT_WR)
