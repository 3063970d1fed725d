"""The proxy: listens at a unix socket and serves each connection in a thread of its own."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import Self

from handrail.policy.network.allowlist import Allowlist
from handrail.sandbox.proxy.attempt import Attempt
from handrail.sandbox.proxy.handing_over import confirm_handover, receive_first_message
from handrail.sandbox.proxy.lookup import Lookup, Resolve, resolve_addresses
from handrail.sandbox.proxy.place import NAME, listen_in
from handrail.sandbox.proxy.reaching import ProxyConnector
from handrail.sandbox.proxy.visit import ProxyConnection, close_connection
from handrail.sandbox.proxy.waiting import READABLE, ClosedError, Deadline, Poller, TooSlowError

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
