"""The proxy that is a command's only way to the network."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import NamedTuple, Self

from handrail.policy.network.allowlist import Allowlist
from handrail.policy.network.hosts import HostPort, InvalidHost
from handrail.sandbox.proxy.connect import ConnectFailure, Lookup, ProxyConnector, Resolve, resolve_addresses
from handrail.sandbox.proxy.handover import NAME, confirm_handover, listen_in, receive_first_message
from handrail.sandbox.proxy.http import (
    ESTABLISHED,
    MALFORMED,
    NOT_REACHED,
    REFUSED,
    MalformedError,
    ProxyRequest,
    build_body,
    build_forwarded_head,
    build_response,
    find_named_host,
    parse_request,
)
from handrail.sandbox.proxy.sockets import READABLE, ClosedError, Deadline, Poller, TooSlowError, relay

# § [sandbox.proxy.attempt] What somebody tried to reach, and whether it was let through.


class Attempt(NamedTuple):
    """One request to the proxy, whatever became of it."""

    host: str
    """A name or an address; what was written in its place, safe to be shown, where it is neither."""
    port: int
    """0 where none could be told."""
    allowed: bool
    reason: str
    """Why not, in words; of one that was allowed, what kept it from being reached, or nothing."""
    problem: str = ""
    """What the list has against the host: `is not listed`. Empty if it has nothing, or was not asked."""


# § [sandbox.proxy.visit] One program's visit to the proxy: one request, one answer.

_MAX_HEAD_BYTES = 16_384
_SECONDS_FOR_HEAD = 30.0
_SECONDS_TO_TELL = 10.0
_SECONDS_TO_LEAVE = 2.0
_END = b"\r\n\r\n"
_PIECE_BYTES = 4096


class ProxyConnection:
    """Serves one connection to its end; who made it closes it."""

    def __init__(self, reaching: ProxyConnector, waiting: Poller, on_attempt: Callable[[Attempt], None]) -> None:
        self._reaching = reaching
        self._waiting = waiting
        self._on_attempt = on_attempt

    def serve(self, client: socket.socket, begun: bytes = b"") -> None:
        """Reads a request, asks the list, carries bytes. `begun` was read of it already. A connection that says nothing
        asks for nothing, and is no attempt."""
        try:
            data = self._begun(client, begun)
            if not data:
                return
            head, _, first = data.partition(_END)
            request = parse_request(head)
        except MalformedError as error:
            self._refuse(client, Attempt(error.named, error.port, False, error.reason), MALFORMED)
            return
        self._answer(client, request, first)

    def _answer(self, client: socket.socket, request: ProxyRequest, first: bytes) -> None:
        target = request.target
        if isinstance(target, InvalidHost):
            self._refuse(client, Attempt(target.host, target.port, False, target.reason), REFUSED)
            return
        server = self._reaching.connect(target)
        if isinstance(server, ConnectFailure):
            attempt = Attempt(target.host, target.port, server.allowed, server.reason, server.problem)
            self._refuse(client, attempt, server.status)
            return
        try:
            self._carry(client, server, request, target, first)
        finally:
            close_connection(server)

    def _carry(
        self, client: socket.socket, server: socket.socket, request: ProxyRequest, target: HostPort, first: bytes
    ) -> None:
        """The attempt is told before a byte goes either way: where it cannot be, none does."""
        if not self._told(Attempt(target.host, target.port, True, "")):
            self._say(client, build_response(NOT_REACHED, "the attempt could not be written down, so nothing was sent"))
            return
        deadline = Deadline(_SECONDS_TO_TELL)
        if request.is_tunnel:
            self._waiting.send(client, ESTABLISHED, deadline)
        else:
            self._waiting.send(server, build_forwarded_head(request, target), deadline)
        with contextlib.suppress(MalformedError):  # in its body, where it is too late to say so
            relay(self._waiting, client, server, build_body(request), first)

    def _begun(self, client: socket.socket, begun: bytes) -> bytes:
        """The head, its end, and what came after it; nothing at all where nothing came."""
        data, deadline = begun, Deadline(_SECONDS_FOR_HEAD)
        while _END not in data[:_MAX_HEAD_BYTES]:
            if len(data) >= _MAX_HEAD_BYTES:
                raise MalformedError(f"its head is longer than {_MAX_HEAD_BYTES // 1024} KB", _named_in(data))
            try:
                piece = self._waiting.receive(client, _PIECE_BYTES, deadline)
            except TooSlowError:
                raise MalformedError("its head did not come in time", _named_in(data)) from None
            if not piece:
                if data:
                    raise MalformedError("it broke off in its head", _named_in(data))
                return b""
            data += piece
        return data

    def _refuse(self, client: socket.socket, attempt: Attempt, status: int) -> None:
        self._told(attempt)
        self._say(client, build_response(status, attempt.reason))

    def _told(self, attempt: Attempt) -> bool:
        try:
            self._on_attempt(attempt)
        except Exception:  # whatever it is: nothing may go unseen, and nobody else may suffer
            return False
        return True

    def _say(self, client: socket.socket, text: bytes) -> None:
        """Says a last word, and waits for the other to leave: closed with something unread, it would be lost."""
        self._waiting.send(client, text, Deadline(_SECONDS_TO_TELL))
        client.shutdown(socket.SHUT_WR)
        deadline = Deadline(_SECONDS_TO_LEAVE)
        while self._waiting.receive(client, _PIECE_BYTES, deadline):
            continue


def _named_in(data: bytes) -> str:
    return find_named_host(data[:_PIECE_BYTES].decode("latin-1").partition("\r\n")[0])


def close_connection(connection: socket.socket) -> None:
    """ClosedError for whoever else may have it, such as a child that was forked meanwhile."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


# § [sandbox.proxy.proxy] The proxy: listens at a unix socket and serves each connection in a thread of its own.

_MAX_VISITS = 64
_SECONDS_TO_BEGIN = 30.0
_PAUSE_SECONDS = 0.1
_FOR_EVER_SECONDS = 86_400.0


class Proxy:
    """Reaches listed hosts for whoever connects to its socket, and tells every attempt, once.

    `on_attempt` is called in the proxy's threads, several at a time. What it has told is told before a byte goes to the
    host. Whoever made it closes it; a process that was forked meanwhile may do so too, which ends its own share alone.
    """

    def __init__(
        self,
        folder: str,
        allow: Allowlist,
        on_attempt: Callable[[Attempt], None],
        *,
        resolve: Resolve = resolve_addresses,
    ) -> None:
        self.path = os.path.join(folder, NAME)
        self._process = os.getpid()
        self._lock = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._visits = 0
        self._closed = False
        self._handed: socket.socket | None = None
        self._waiting = Poller()
        self._lookup = Lookup(resolve)
        self._visit = ProxyConnection(ProxyConnector(allow, self._lookup, self._waiting), self._waiting, on_attempt)
        self._listener: socket.socket | None = None
        try:
            self._listener = listen_in(folder)
            self._start(self._listen, self._listener, self._begin)
        except BaseException:
            self._let_go()
            raise

    def close(self) -> None:
        """Ends every connection and waits for the threads; can be repeated."""
        if os.getpid() != self._process:
            if not self._closed:
                self._closed = True  # without the lock, which may have been held when it was forked
                self._let_go()
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._lock.notify_all()
        try:
            self._waiting.end()
            self._lookup.close()
            self._join()
        finally:  # whoever is interrupted leaves no file and no descriptor either
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _let_go(self) -> None:
        for listener in (self._listener, self._handed):
            if listener is not None:
                listener.close()
        self._waiting.close()

    def _join(self) -> None:
        for thread in self._threads - {threading.current_thread()}:  # no further one can start
            thread.join()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        """A thread that is known until it ends; none where the proxy is closed."""
        with self._lock:
            if self._closed:
                raise ClosedError
            thread = threading.Thread(target=_run, args=(work, arguments), name="handrail-proxy", daemon=True)
            thread.start()
            self._threads = {thread, *(one for one in self._threads if one.is_alive())}

    def _listen(self, listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        while self._handed in {None, listener}:
            with self._lock:
                self._lock.wait_for(lambda: self._closed or self._visits < _MAX_VISITS)
            try:
                self._waiting.poll({listener: READABLE}, _FOR_EVER_SECONDS)
                connection = listener.accept()[0]
            except (TooSlowError, BlockingIOError, ConnectionAbortedError):
                continue
            except OSError:  # no descriptor is left, for the time being
                self._waiting.sleep(_PAUSE_SECONDS)
                continue
            self._welcome(connection, serve)

    def _welcome(self, connection: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        with self._lock:
            self._visits += 1
        try:
            connection.setblocking(False)
            self._start(self._serve, connection, serve)
        except RuntimeError:  # no thread can be had, for the time being
            self._leave(connection)
            self._waiting.sleep(_PAUSE_SECONDS)
        except BaseException:
            self._leave(connection)
            raise

    def _serve(self, connection: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        try:
            serve(connection)
        finally:
            self._leave(connection)

    def _leave(self, connection: socket.socket) -> None:
        close_connection(connection)
        with self._lock:
            self._visits -= 1
            self._lock.notify_all()

    def _begin(self, connection: socket.socket) -> None:
        """A connection by the unix socket: a request, or, for the first who comes with one, a socket to listen at.
        Nobody comes by the unix socket after that: a command could send descriptors with what it says, and one that
        takes for ever to be closed would hold whoever is given it."""
        begun = receive_first_message(connection, self._waiting, Deadline(_SECONDS_TO_BEGIN))
        if begun.data:
            self._visit.serve(connection, begun.data)
        elif begun.listener is not None and self._take_over(begun.listener):
            confirm_handover(connection, self._waiting, Deadline(_SECONDS_TO_BEGIN))

    def _take_over(self, listener: socket.socket) -> bool:
        with self._lock:
            is_first = self._handed is None and not self._closed
            if is_first:
                self._handed = listener
        if not is_first:
            listener.close()
            return False
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)  # which wakes who waits for it
        self._start(self._listen, listener, self._visit.serve)
        return True


def _run(work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    with contextlib.suppress(ClosedError, TooSlowError, OSError):
        work(*arguments)
