"""The TCP ports of a process session, listed or forwarded to this machine."""

import contextlib
import errno
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from typing import NoReturn

from handrail.kernel.process import enter_network
from handrail.kernel.procfs import ProcessStat, list_descendants, read_entry
from handrail.process.sessions.store import KeeperRecord, ProcessIdentity, ProcessLog, is_alive, read_record, read_state
from handrail.protocol.errors import ToolError
from handrail.sandbox.proxy.handover import PORT

MAX_CONNECTIONS = 64
"""Forwarded connections at a time. More of them wait until one has ended."""
_LISTENS = b"0A"
_COUNTS = {"tcp": "sockstat", "tcp6": "sockstat6"}
_CONNECT_SECONDS = 10.0
_POLL_SECONDS = 0.2
_END_SECONDS = 5.0
_RECEIVE_BYTES = 1 << 16
_ENTERED = b"0"
_CREATED, _NOT_CREATED = b"+", b"-"
_LOOPBACK = ((b"4", "127.0.0.1"), (b"6", "::1"))
_FAMILIES = {b"4": socket.AF_INET, b"6": socket.AF_INET6}
_MAX_REPORT_BYTES = 16


def list_listening_ports(record: KeeperRecord) -> tuple[int, ...]:
    """Sorted. Empty: none, or they cannot be seen from here."""
    if not is_alive(record.program) or not is_alive(record.first):
        return ()
    first, program = record.first.number, record.program.number
    is_confined = record.own_processes and _has_own_network(first)
    tables = [table for table in _COUNTS if not is_confined or _has_sockets(first, table)]
    # Beside it in its network: the machine's programs, or the session's other process sessions.
    is_alone = is_confined and not _has_own_network(program)
    tree = list_descendants(program) if tables and not is_alone else []
    own = {inode for process in tree if not process.dead for inode in _list_sockets(process)}
    if not is_alone and not own:
        return ()
    proxy = {PORT} if record.proxy is not None else set[int]()
    return tuple(sorted({port for port, inode in _list_listeners(first, tables) if is_alone or inode in own} - proxy))


def _has_own_network(process: int) -> bool:
    try:
        return os.readlink(f"/proc/{process}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _has_sockets(process: int, table: str) -> bool:
    """Saves reading a table, which takes 10 ms as the kernel goes through the sockets of all networks."""
    counts = read_entry(f"/proc/{process}/net/{_COUNTS[table]}").partition(table.upper().encode() + b": inuse ")[2]
    return not counts or counts.split()[0] != b"0"


def _list_listeners(process: int, tables: Iterable[str]) -> Iterator[tuple[int, bytes]]:
    """Port and inode of every listening socket in the process's network."""
    for name in tables:
        with contextlib.suppress(OSError), open(f"/proc/{process}/net/{name}", "rb") as lines:
            for fields in map(bytes.split, lines):
                if len(fields) > 9 and fields[3] == _LISTENS:
                    yield int(fields[1].rpartition(b":")[2], 16), fields[9]


def _list_sockets(process: ProcessStat) -> Iterator[bytes]:
    """The inodes of its sockets."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process.number}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{process.number}/fd/{name}")
                if target.startswith("socket:["):
                    yield target[8:-1].encode()


def open_shared_network(record: KeeperRecord) -> int | None:
    """A descriptor of the network that a running process session shares with others. None: it shares none.

    Its program stays outside of the sandbox. Only handrail itself can have put it into another network than this one.
    """
    program = record.program
    if not record.own_processes or not is_alive(program) or not _has_own_network(program.number):
        return None
    try:
        return _open_namespace(program)
    except OSError:
        return None


def _open_namespace(process: ProcessIdentity) -> int:
    """A descriptor of the network of a process. FileNotFoundError if it has ended."""
    namespace = os.open(path := f"/proc/{process.number}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if is_alive(process):  # so its number was not reused before
        return namespace
    os.close(namespace)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


class NamespaceConnector:
    """Connects to a port inside the network of a process session. This process must have one thread when it is made.

    A socket belongs to the network that it was created in, whichever process holds it. So a child enters that network
    for good, and does nothing but create sockets there and hand them out.
    """

    def __init__(self, folder: str, port: int) -> None:
        self._port = port
        self._lock = threading.Lock()
        name = os.path.basename(folder)
        namespace = _open_network(folder, name, port)
        try:
            self._connection, self._child = _fork_into(namespace)
        finally:
            os.close(namespace)
        report = self._connection.recv(_MAX_REPORT_BYTES)
        if report != _ENTERED:
            self.close()
            reason = os.strerror(int(report)) if report else "the helper process was killed"
            raise _build_entry_error(name, reason)

    def connect(self) -> socket.socket | None:
        """A connection by IPv4, or else by IPv6. None: the port refuses both."""
        for family, address in _LOOPBACK:
            created = self._create_socket(family)
            if created is None:
                continue
            try:
                created.settimeout(_CONNECT_SECONDS)
                created.connect((address, self._port))
                created.settimeout(None)
            except OSError:
                created.close()
            else:
                return created
        return None

    def close(self) -> None:
        """End the child. Connections stay open."""
        with self._lock:
            self._connection.close()
            if self._child:
                os.waitpid(self._child, 0)
                self._child = 0

    def _create_socket(self, family: bytes) -> socket.socket | None:
        """None: the network has no such family, or the child has ended."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(family)
            _, descriptors, _, _ = socket.recv_fds(self._connection, 1, 1)
            if descriptors:
                os.set_inheritable(descriptors[0], False)
                return socket.socket(fileno=descriptors[0])
        return None


def _open_network(folder: str, name: str, port: int) -> int:
    record = read_record(folder)
    if record is None or read_state(folder) != "running":
        raise _build_ended_error(name)
    if not is_alive(record.first):
        raise ToolError("UNAVAILABLE", f"The command of {name} is starting or ending. Try again.")
    if not record.own_processes or not _has_own_network(record.first.number):
        text = f"{name} has no network of its own (its sandbox is of tier 1 or 0). Nothing is forwarded:"
        raise ToolError("UNAVAILABLE", f"{text} its ports are ports of this machine, http://127.0.0.1:{port}/")
    if record.proxy is not None and port == PORT:
        text = f"Port {port} of {name} is its proxy to approved hosts, not its own port."
        raise ToolError("UNAVAILABLE", f"{text} Nothing is forwarded. Look: handrail processes")
    try:
        return _open_namespace(record.first)
    except FileNotFoundError:
        raise _build_ended_error(name) from None
    except OSError as error:
        raise _build_entry_error(name, str(error.strerror)) from None


def _build_ended_error(name: str) -> ToolError:
    return ToolError("PROCESS_ENDED", f"{name} has ended. Nothing is forwarded. Its log has the outcome.")


def _build_entry_error(name: str, reason: str) -> ToolError:
    return ToolError("UNAVAILABLE", f"The network of {name} cannot be entered: {reason}. Nothing is forwarded.")


def _fork_into(namespace: int) -> tuple[socket.socket, int]:
    """A connection to a child in the network namespace, and the child's number."""
    ours, theirs = socket.socketpair()
    try:
        child = os.fork()
        if not child:
            _serve_sockets(namespace, theirs)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, child


def _serve_sockets(namespace: int, connection: socket.socket) -> NoReturn:
    """Create sockets in the child until the parent closes its end."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
        connection.sendall(_enter(namespace))
        for number in map(int, os.listdir("/proc/self/fd")):
            if number != connection.fileno():
                with contextlib.suppress(OSError):
                    os.close(number)
        while family := connection.recv(1):
            _send_socket(connection, _FAMILIES[family])
    finally:
        os._exit(0)  # skip the cleanup of the forked program


def _enter(namespace: int) -> bytes:
    """The number of the error. 0: none."""
    try:
        enter_network(namespace)
    except OSError as error:
        return str(error.errno or errno.EPERM).encode()
    return _ENTERED


def _send_socket(connection: socket.socket, family: socket.AddressFamily) -> None:
    try:
        created = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        connection.sendall(_NOT_CREATED)
        return
    with created:
        socket.send_fds(connection, [_CREATED], [created.fileno()])


def forward_port(folder: str, connector: NamespaceConnector, listener: socket.socket) -> None:
    """Forward connections from a listening socket until the process session has ended and its last answers arrived."""
    connections: list[_ForwardedConnection] = []
    listener.listen(MAX_CONNECTIONS)
    poller = select.poll()
    poller.register(listener, select.POLLIN)
    try:
        while read_state(folder) == "running":
            connections[:] = [one for one in connections if one.is_open]
            if connections:
                ProcessLog(folder).mark_asked()
            if len(connections) >= MAX_CONNECTIONS:
                time.sleep(_POLL_SECONDS)
            elif poller.poll(_POLL_SECONDS * 1000):
                with contextlib.suppress(OSError):  # the client may be gone
                    connections.append(_ForwardedConnection(listener.accept()[0], connector))
        until = time.monotonic() + _END_SECONDS
        for one in connections:
            one.wait_for_answer(until - time.monotonic())
    finally:
        for one in connections:
            one.end()


class _ForwardedConnection:
    """One connection. Each direction has a thread, so that one side may stop sending and go on receiving."""

    def __init__(self, client: socket.socket, connector: NamespaceConnector) -> None:
        self._client = client
        self._connector = connector
        self._server: socket.socket | None = None
        self._is_answered = threading.Event()
        self._answers = threading.Thread(target=self._forward, name="handrail-answers", daemon=True)
        self._answers.start()

    @property
    def is_open(self) -> bool:
        return self._answers.is_alive()

    def wait_for_answer(self, seconds: float) -> None:
        self._is_answered.wait(max(0.0, seconds))

    def end(self) -> None:
        for side in (self._client, self._server):
            if side is not None:
                _shut(side, socket.SHUT_RDWR)
        self._answers.join(_END_SECONDS)

    def _forward(self) -> None:
        with self._client as client:
            self._server = self._connector.connect()
            if self._server is None:
                return
            with self._server as server:
                requests = threading.Thread(target=_copy, args=(client, server), name="handrail-questions", daemon=True)
                requests.start()
                _copy(server, client)
                self._is_answered.set()
                requests.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the end of the source. If the source breaks off, close both directions."""
    while True:
        try:
            data = source.recv(_RECEIVE_BYTES)
        except OSError:
            _shut(source, socket.SHUT_RDWR)
            _shut(target, socket.SHUT_RDWR)
            return
        if not data:
            _shut(target, socket.SHUT_WR)
            return
        try:
            target.sendall(data)
        except OSError:  # the target stopped receiving; its own data may still be under way
            _shut(source, socket.SHUT_RD)
            return


def _shut(side: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):
        side.shutdown(how)
