"""A proxy for tests, programs that talk to it, and servers on this machine's loopback that it may reach."""

import contextlib
import http.server
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from handrail.policy.network.allowlist import Allowlist
from handrail.sandbox.proxy.proxy import Attempt, Proxy

PATIENCE = 60.0


class Proxied:
    """A proxy with a list, and what it told of attempts."""

    def __init__(self, folder: Path, *entries: str, **options: Any) -> None:
        self.entries = entries
        self.attempts: list[Attempt] = []
        told = options.pop("on_attempt", self.attempts.append)
        self.proxy = Proxy(str(folder), Allowlist.from_entries(entries), told, **options)

    def connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(self.proxy.path)
        return connection

    def said(self, request: bytes, *, end: bool = False) -> bytes:
        """What is answered to some bytes, after which nothing more comes, and which may be told."""
        with self.connected() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(request)
                if end:
                    connection.shutdown(socket.SHUT_WR)
            return all_of(connection)

    def get(self, url: str, host: str | None = None) -> bytes:
        named = url.split("/")[2] if host is None else host
        return self.said(f"GET {url} HTTP/1.1\r\nHost: {named}\r\n\r\n".encode())

    def only_attempt(self) -> Attempt:
        [attempt] = self.attempts
        return attempt


def all_of(connection: socket.socket) -> bytes:
    """Everything up to the end; a connection that breaks off ends too."""
    pieces: list[bytes] = []
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


class Server:
    """Listens on this machine and answers each connection by a function; remembers what it was sent."""

    def __init__(self, answer: Callable[[socket.socket], None], host: str = "127.0.0.1", port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family)
        self.port: int = self._listener.getsockname()[1]
        self.visits = 0
        self._answer = answer
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            self.visits += 1
            with connection, contextlib.suppress(OSError):
                connection.settimeout(PATIENCE)
                self._answer(connection)


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket], None], **place: Any) -> Iterator[Server]:
    server = Server(answer, **place)
    try:
        yield server
    finally:
        server.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and writes to nobody about it."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def web(
    folder: Path, handler: type[Quiet] = Quiet, wrap: ssl.SSLContext | None = None
) -> Iterator[http.server.HTTPServer]:
    """A web server for the files of a folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    if wrap is not None:
        server.socket = wrap.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)


def nothing_listens_at(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(path) != 0


def eventually(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def leading_to(*addresses: str) -> Callable[[str, int], Sequence[str]]:
    """A resolver to which every name has these addresses, in turn: each time it is asked, the next."""
    turns = iter(addresses)
    return lambda _host, _port: [next(turns)]
