"""Carries connections from a port of this machine into the network of a process session, as they come."""

import contextlib
import select
import socket
import threading
import time
from typing import Self

from handrail.process.sessions.reaching import NamespaceConnector
from handrail.process.sessions.session import ProcessSession

MAX_CONNECTIONS = 64
"""Connections at a time; more of them wait until one has ended."""
_PAUSE_SECONDS = 0.2
_PIECE_BYTES = 1 << 16
_DONE_WITHIN_SECONDS = 5.0


class PortForwarder:
    """What comes to a socket that listens here goes on to who is inside."""

    def __init__(self, session: ProcessSession, inside: NamespaceConnector, listener: socket.socket) -> None:
        self._session = session
        self._inside = inside
        self._listener = listener
        self._open: list[_Connection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._open:
            one.end()

    def run(self) -> None:
        """Comes back when the process session has ended, and what it had answered until then has arrived."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while self._session.running:
            self._open = [one for one in self._open if one.is_open]
            if self._open:
                self._session.log.mark_asked()
            if len(self._open) >= MAX_CONNECTIONS:
                time.sleep(_PAUSE_SECONDS)
            elif poll.poll(_PAUSE_SECONDS * 1000):
                self._take()
        until = time.monotonic() + _DONE_WITHIN_SECONDS
        for one in self._open:
            one.let_arrive(until - time.monotonic())

    def _take(self) -> None:
        with contextlib.suppress(OSError):  # who came may be gone again
            client, _ = self._listener.accept()
            self._open.append(_Connection(client, self._inside))


class _Connection:
    """One, in two threads: each carries one way, so that either side may end its own and go on listening."""

    def __init__(self, client: socket.socket, inside: NamespaceConnector) -> None:
        self._client = client
        self._inside = inside
        self._server: socket.socket | None = None
        self._answered = threading.Event()
        self._answers = threading.Thread(target=self._carry, name="handrail-answers", daemon=True)
        self._answers.start()

    @property
    def is_open(self) -> bool:
        """Whether something may still come, from either side."""
        return self._answers.is_alive()

    def let_arrive(self, seconds: float) -> None:
        """Waits for the rest of what is answered."""
        self._answered.wait(max(0.0, seconds))

    def end(self) -> None:
        """Cuts it off, and waits for its threads."""
        for side in (self._client, self._server):
            if side is not None:
                _shut(side, socket.SHUT_RDWR)
        self._answers.join(_DONE_WITHIN_SECONDS)

    def _carry(self) -> None:
        with self._client as client:
            self._server = self._inside.connect()
            if self._server is not None:
                with self._server as server:
                    self._carry_both_ways(client, server)

    def _carry_both_ways(self, client: socket.socket, server: socket.socket) -> None:
        questions = threading.Thread(target=_carry, args=(client, server), name="handrail-questions", daemon=True)
        questions.start()
        _carry(server, client)
        self._answered.set()
        questions.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    """All that comes, then the end of it. Where it was broken off nothing goes the other way either."""
    while True:
        try:
            data = source.recv(_PIECE_BYTES)
        except OSError:
            _shut(source, socket.SHUT_RDWR)
            _shut(target, socket.SHUT_RDWR)
            return
        if not data:
            _shut(target, socket.SHUT_WR)
            return
        try:
            target.sendall(data)
        except OSError:  # it does not listen any more; what it said before may still be under way
            _shut(source, socket.SHUT_RD)
            return


def _shut(side: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):
        side.shutdown(how)
