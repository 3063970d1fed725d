"""Waits for sockets, as long as there is time and the proxy is not closed."""

import errno
import os
import select
import socket
import time

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
