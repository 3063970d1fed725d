"""The proxy of a command, which is its only network."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import NamedTuple, Self

from handrail.policy.network.allowlist import Allowlist
from handrail.policy.network.hosts import HostPort, InvalidHost
from handrail.sandbox.proxy.connect import ConnectFailure, Lookup, ProxyConnector, Resolve, resolve_addresses
from handrail.sandbox.proxy.handover import CONFIRMATION, NAME, listen_in, receive_first_message
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

_MAX_CONNECTIONS = 64
_SECONDS_TO_BEGIN = 30.0
_PAUSE_SECONDS = 0.1
_DAY_SECONDS = 86_400.0
_MAX_HEAD_BYTES = 16_384
_SECONDS_FOR_HEAD = 30.0
_SECONDS_TO_SEND = 10.0
_SECONDS_TO_LEAVE = 2.0
_HEAD_END = b"\r\n\r\n"
_PIECE_BYTES = 4096


class Attempt(NamedTuple):
    """One request to the proxy, allowed or not."""

    host: str
    """A name or an address. If it is neither, the text in its place, safe to be shown."""
    port: int
    """0 if unknown."""
    allowed: bool
    reason: str
    """Why it was refused, or why an allowed host was not reached."""
    problem: str = ""
    """Why the list refuses the host: `is not listed`. Empty if it was not asked."""


class Proxy:
    """Connects its clients to listed hosts, and reports every attempt once.

    `on_attempt` is called in the proxy's threads, several at a time, before a byte goes to the host. The owner closes
    the proxy. In a forked process, closing frees its own copy alone.
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
        self._connections = 0
        self._closed = False
        self._inner_listener: socket.socket | None = None
        self._poller = Poller()
        self._lookup = Lookup(resolve)
        self._connection = ProxyConnection(ProxyConnector(allow, self._lookup, self._poller), self._poller, on_attempt)
        self._listener: socket.socket | None = None
        try:
            self._listener = listen_in(folder)
            self._start(self._listen, self._listener, self._serve_first)
        except BaseException:
            self._release()
            raise

    def close(self) -> None:
        """End every connection and wait for the threads."""
        if os.getpid() != self._process:
            if not self._closed:
                self._closed = True  # without the lock, which another thread may have held at the fork
                self._release()
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._lock.notify_all()
        try:
            self._poller.end()
            self._lookup.close()
            for thread in self._threads - {threading.current_thread()}:  # no new ones can start
                thread.join()
        finally:  # also after an interrupt
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _release(self) -> None:
        for listener in (self._listener, self._inner_listener):
            if listener is not None:
                listener.close()
        self._poller.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        """Start a thread that `close` waits for."""
        with self._lock:
            if self._closed:
                raise ClosedError
            thread = threading.Thread(target=_run, args=(work, arguments), name="handrail-proxy", daemon=True)
            thread.start()
            self._threads = {thread, *(one for one in self._threads if one.is_alive())}

    def _listen(self, listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        while self._inner_listener in {None, listener}:
            with self._lock:
                self._lock.wait_for(lambda: self._closed or self._connections < _MAX_CONNECTIONS)
            try:
                self._poller.poll({listener: READABLE}, _DAY_SECONDS)
                connection = listener.accept()[0]
            except (TooSlowError, BlockingIOError, ConnectionAbortedError):
                continue
            except OSError:  # out of descriptors for now
                self._poller.sleep(_PAUSE_SECONDS)
                continue
            self._accept(connection, serve)

    def _accept(self, connection: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        with self._lock:
            self._connections += 1
        try:
            connection.setblocking(False)
            self._start(self._serve, connection, serve)
        except RuntimeError:  # out of threads for now
            self._drop(connection)
            self._poller.sleep(_PAUSE_SECONDS)
        except BaseException:
            self._drop(connection)
            raise

    def _serve(self, connection: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        try:
            serve(connection)
        finally:
            self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        close_connection(connection)
        with self._lock:
            self._connections -= 1
            self._lock.notify_all()

    def _serve_first(self, connection: socket.socket) -> None:
        """Serve a connection by the unix socket: a request, or the handover of a listening socket.

        The unix socket closes with the handover. Otherwise a command could send descriptors that block when closed.
        """
        begun = receive_first_message(connection, self._poller, Deadline(_SECONDS_TO_BEGIN))
        if isinstance(begun, bytes):
            if begun:
                self._connection.serve(connection, begun)
        elif begun is not None and self._take_over(begun):
            self._poller.send(connection, CONFIRMATION, Deadline(_SECONDS_TO_BEGIN))

    def _take_over(self, listener: socket.socket) -> bool:
        with self._lock:
            is_first = self._inner_listener is None and not self._closed
            if is_first:
                self._inner_listener = listener
        if not is_first:
            listener.close()
            return False
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
        self._start(self._listen, listener, self._connection.serve)
        return True


def _run(work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    with contextlib.suppress(ClosedError, TooSlowError, OSError):
        work(*arguments)


class ProxyConnection:
    """Serves one request of a client. The caller closes the connection."""

    def __init__(self, connector: ProxyConnector, poller: Poller, on_attempt: Callable[[Attempt], None]) -> None:
        self._connector = connector
        self._poller = poller
        self._on_attempt = on_attempt

    def serve(self, client: socket.socket, begun: bytes = b"") -> None:
        """Read a request, judge it, relay. `begun` was read before. A connection without a byte is no attempt."""
        try:
            data = self._read_head(client, begun)
            if not data:
                return
            head, _, first = data.partition(_HEAD_END)
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
        server = self._connector.connect(target)
        if isinstance(server, ConnectFailure):
            attempt = Attempt(target.host, target.port, server.allowed, server.reason, server.problem)
            self._refuse(client, attempt, server.status)
            return
        try:
            self._relay(client, server, request, target, first)
        finally:
            close_connection(server)

    def _relay(
        self, client: socket.socket, server: socket.socket, request: ProxyRequest, target: HostPort, first: bytes
    ) -> None:
        """Report the attempt, then relay. If reporting fails, no byte is sent."""
        if not self._report(Attempt(target.host, target.port, True, "")):
            self._send_last(client, build_response(NOT_REACHED, "the attempt could not be logged, so nothing was sent"))
            return
        deadline = Deadline(_SECONDS_TO_SEND)
        if request.is_tunnel:
            self._poller.send(client, ESTABLISHED, deadline)
        else:
            self._poller.send(server, build_forwarded_head(request, target), deadline)
        with contextlib.suppress(MalformedError):  # in its body, which is too late for a response
            relay(self._poller, client, server, build_body(request), first)

    def _read_head(self, client: socket.socket, begun: bytes) -> bytes:
        """Read until the end of the head. Empty if nothing came."""
        data, deadline = begun, Deadline(_SECONDS_FOR_HEAD)
        while _HEAD_END not in data[:_MAX_HEAD_BYTES]:
            if len(data) >= _MAX_HEAD_BYTES:
                raise MalformedError(f"its head is longer than {_MAX_HEAD_BYTES // 1024} KB", _find_named_host(data))
            try:
                piece = self._poller.receive(client, _PIECE_BYTES, deadline)
            except TooSlowError:
                raise MalformedError("its head did not arrive in time", _find_named_host(data)) from None
            if not piece:
                if data:
                    raise MalformedError("it ended inside its head", _find_named_host(data))
                return b""
            data += piece
        return data

    def _refuse(self, client: socket.socket, attempt: Attempt, status: int) -> None:
        self._report(attempt)
        self._send_last(client, build_response(status, attempt.reason))

    def _report(self, attempt: Attempt) -> bool:
        try:
            self._on_attempt(attempt)
        except Exception:  # an attempt must not go unreported, and other connections must go on
            return False
        return True

    def _send_last(self, client: socket.socket, text: bytes) -> None:
        """Send a last response and wait until the client leaves: closing with unread bytes would lose it."""
        self._poller.send(client, text, Deadline(_SECONDS_TO_SEND))
        client.shutdown(socket.SHUT_WR)
        deadline = Deadline(_SECONDS_TO_LEAVE)
        while self._poller.receive(client, _PIECE_BYTES, deadline):
            continue


def _find_named_host(data: bytes) -> str:
    return find_named_host(data[:_PIECE_BYTES].decode("latin-1").partition("\r\n")[0])


def close_connection(connection: socket.socket) -> None:
    """Close it also for forked processes that share it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
