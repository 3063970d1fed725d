"""Forwards ports of a background process."""

import contextlib
import errno
import os
import select
import signal
import socket
import threading
import time
from typing import NoReturn, Self

from handrail.kernel.process import enter_network
from handrail.process.sessions.sessions import ProcessSession
from handrail.process.sessions.store import KeeperRecord, has_own_network, is_alive, read_record
from handrail.protocol.errors import ToolError
from handrail.sandbox.proxy.handover import PORT

# § [process.sessions.reaching] Connects to what listens inside the network of a process session. A socket belongs
# § to the network it was made in, whoever holds it. So a child goes into that network, for good, and does nothing
# § but make sockets there and hand them out; all else stays with who asked, in the network of the machine.

_CONNECT_SECONDS = 10.0
_ENTERED = b"0"
_MADE, _NOT_MADE = b"+", b"-"
_LOOPBACK = ((b"4", "127.0.0.1"), (b"6", "::1"))
_FAMILIES = {b"4": socket.AF_INET, b"6": socket.AF_INET6}
_MAX_FIRST_ANSWER_BYTES = 16


class NamespaceConnector:
    """Somebody who is in the network of a process session. To be made while this process has one thread only."""

    def __init__(self, session: ProcessSession, port: int) -> None:
        """ToolError where it has ended, has no network of its own, or that cannot be entered."""
        self._port = port
        self._one_at_a_time = threading.Lock()
        namespace = _network_of(session, port)
        try:
            self._way, self._child = _sent_into(namespace)
        finally:
            os.close(namespace)
        said = self._way.recv(_MAX_FIRST_ANSWER_BYTES)
        if said != _ENTERED:
            self.close()
            why = os.strerror(int(said)) if said else "who went there was killed"
            raise _cannot_be_entered(session.id, why)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> socket.socket | None:
        """A connection to the port, by IPv4 or else by IPv6; None where nobody takes it."""
        for family, address in _LOOPBACK:
            made = self._made(family)
            if made is None:
                continue
            try:
                made.settimeout(_CONNECT_SECONDS)
                made.connect((address, self._port))
                made.settimeout(None)
            except OSError:
                made.close()
            else:
                return made
        return None

    def close(self) -> None:
        """Ends the child; connections that were made stay."""
        with self._one_at_a_time:
            self._way.close()
            if self._child:
                os.waitpid(self._child, 0)
                self._child = 0

    def _made(self, family: bytes) -> socket.socket | None:
        """A new socket of that network; None where it has no such family, or nobody is there any more."""
        with self._one_at_a_time, contextlib.suppress(OSError):
            self._way.sendall(family)
            _, handed, _, _ = socket.recv_fds(self._way, 1, 1)
            if handed:
                os.set_inheritable(handed[0], False)
                return socket.socket(fileno=handed[0])
        return None


def _network_of(session: ProcessSession, port: int) -> int:
    """A descriptor of its network namespace."""
    known = read_record(session.folder)
    if known is None or not session.running:
        raise _has_ended(session.id)
    if not is_alive(known.first):
        raise ToolError("UNAVAILABLE", f"The command of {session.id} is just starting or ending. Try again.")
    if not known.own_processes or not has_own_network(known.first.number):
        text = f"{session.id} has no network of its own (its sandbox is of tier 1 or 0). Nothing is forwarded:"
        raise ToolError("UNAVAILABLE", f"{text} what it listens on is a port of this machine, http://127.0.0.1:{port}/")
    if known.proxy is not None and port == PORT:
        text = f"Port {port} of {session.id} is its way to the hosts that were opened to it, not its own."
        raise ToolError("UNAVAILABLE", f"{text} Nothing is forwarded. Look: handrail processes")
    return _opened(session.id, known)


def _opened(name: str, known: KeeperRecord) -> int:
    try:
        namespace = os.open(f"/proc/{known.first.number}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _has_ended(name) from None
    except OSError as error:
        raise _cannot_be_entered(name, str(error.strerror)) from None
    if is_alive(known.first):  # still: so it was that very process whose network was opened
        return namespace
    os.close(namespace)
    raise _has_ended(name)


def _has_ended(name: str) -> ToolError:
    return ToolError("PROCESS_ENDED", f"{name} has ended. Nothing is forwarded: its log says how it went.")


def _cannot_be_entered(name: str, why: str) -> ToolError:
    return ToolError("UNAVAILABLE", f"The network of {name} cannot be entered: {why}. Nothing is forwarded.")


def _sent_into(namespace: int) -> tuple[socket.socket, int]:
    """The way to a child that goes there, and its number."""
    ours, theirs = socket.socketpair()
    try:
        child = os.fork()
        if not child:
            _live_there(namespace, theirs)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, child


def _live_there(namespace: int, way: socket.socket) -> NoReturn:
    """What the child does, until nobody holds the other end of its way."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it
        way.sendall(_entered(namespace))
        _close_all_but(way.fileno())
        while asked := way.recv(1):
            _hand_out(way, _FAMILIES[asked])
    finally:
        os._exit(0)  # whatever happened: nothing of who it was forked from is to be ended here


def _entered(namespace: int) -> bytes:
    """How it went: a number of an error, or 0."""
    try:
        enter_network(namespace)
    except OSError as error:
        return str(error.errno or errno.EPERM).encode()
    return _ENTERED


def _close_all_but(kept: int) -> None:
    for number in map(int, os.listdir("/proc/self/fd")):
        if number != kept:
            with contextlib.suppress(OSError):
                os.close(number)


def _hand_out(way: socket.socket, family: socket.AddressFamily) -> None:
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        way.sendall(_NOT_MADE)
        return
    with made:
        socket.send_fds(way, [_MADE], [made.fileno()])


# § [process.sessions.forwarding] Carries connections from a port of this machine into the network of a process
# § session, as they come.

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
