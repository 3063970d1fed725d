"""The socket of a keeper."""

import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Callable

from handrail.process.keeper.state import SOCKET, VERSION, Json
from handrail.process.keeper.terminal import ENDED, READ, EventPoller, InputQueue, PendingInput

_MAX_REQUEST_BYTES = 4096
_PIECE_BYTES = 1 << 16
_MAX_CLIENTS = 64
_REQUEST_SECONDS = 10.0
"""Seconds in which a request has to come."""
_CREDENTIALS = struct.Struct("3i")


class KeeperServer:
    """Listens in the folder, for this user alone."""

    def __init__(self, folder: int, events: EventPoller, stop: Callable[[str], None], typing: InputQueue) -> None:
        self._events = events
        self._stop = stop
        self._input = typing
        self._clients: dict[int, _KeeperClient] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        before = os.umask(0o177)
        try:
            self._socket.bind(f"/proc/self/fd/{folder}/{SOCKET}")  # a path has 108 bytes, a folder's may be longer
        finally:
            os.umask(before)
        self._socket.listen(_MAX_CLIENTS)
        events.on(self._socket.fileno(), READ, self._accept)

    def pause(self, now: float) -> float:
        """Seconds until somebody has been waited for long enough."""
        return min((client.until - now for client in self._clients.values()), default=3600.0)

    def drop_slow_clients(self, now: float) -> None:
        """Closes connections on which no request has come."""
        for client in [client for client in self._clients.values() if client.until <= now]:
            self._close(client)

    def _accept(self, _ready: int) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return
        if len(self._clients) >= _MAX_CLIENTS or not _is_ours(connection):
            connection.close()
            return
        client = _KeeperClient(connection)
        self._clients[connection.fileno()] = client
        self._events.on(connection.fileno(), READ, lambda ready: self._take(client, ready))

    def _take(self, client: "_KeeperClient", ready: int) -> None:
        if client.waits:
            self._look_who_waits(client)
        elif client.answered:
            if not client.receive(
                _PIECE_BYTES
            ):  # what it still had to say is not wanted, but lost would be our answer too
                self._close(client)
        elif client.writing is None:
            self._take_request(client)
        elif ready & ENDED:
            self._close(client)
        else:
            self._events.change(client.descriptor, 0)  # there is something to be fetched now

    def _take_request(self, client: "_KeeperClient") -> None:
        data = client.receive(_MAX_REQUEST_BYTES)
        client.request += data
        line, newline, rest = client.request.partition(b"\n")
        if newline:
            client.request = rest
            self._do(client, line)
        elif not data or len(client.request) >= _MAX_REQUEST_BYTES:
            self._close(client)

    def _do(self, client: "_KeeperClient", line: bytes) -> None:
        try:
            asked = json.loads(line)
            version, what = asked["v"], asked["do"]
            if version != VERSION:
                self._answer(client, {"error": "version"})
            elif what == "stop":
                self._stop(str(asked["reason"])[:80])
                self._answer(client, {})
            elif what == "await":
                self._begin_waiting(client)
            elif what == "write":
                self._write(client, int(asked["size"]), eof=bool(asked["eof"]))
            else:
                self._answer(client, {"error": "request"})
        except (ValueError, KeyError, TypeError):
            self._answer(client, {"error": "request"})

    def _write(self, client: "_KeeperClient", size: int, *, eof: bool) -> None:
        def fetch(most: int) -> bytes:
            data = client.fetch(most)
            self._events.change(client.descriptor, 0 if data else READ)
            return data

        def done(taken: int, complete: bool) -> None:
            client.writing = None
            self._answer(client, {"taken": taken} if complete else {"error": "not taken", "taken": taken})

        client.until = float("inf")  # who waits for its turn is waited for
        client.writing = PendingInput(max(0, size), eof=eof, fetch=fetch, done=done)
        self._events.change(client.descriptor, 0)
        self._input.add(client.writing)

    def _begin_waiting(self, client: "_KeeperClient") -> None:
        """Somebody waits for the command, and nobody else knows of it yet."""
        self._answer(client, {})
        client.waits, client.until = True, float("inf")

    def _look_who_waits(self, client: "_KeeperClient") -> None:
        let_go = client.receive(1)
        self._close(client)
        if not let_go:  # they are gone, and it with them
            self._stop("session")

    def _answer(self, client: "_KeeperClient", answer: Json) -> None:
        client.send(json.dumps({"v": VERSION, **answer}).encode() + b"\n")
        client.answered = True
        client.until = time.monotonic() + _REQUEST_SECONDS
        self._events.change(client.descriptor, READ)

    def _close(self, client: "_KeeperClient") -> None:
        if self._clients.pop(client.descriptor, None) is not None:
            self._events.off(client.descriptor)
            if client.writing is not None:
                self._input.forget(client.writing)
            client.connection.close()


class _KeeperClient:
    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.descriptor = connection.fileno()
        self.request = b""
        self.writing: PendingInput | None = None
        self.answered = False
        self.waits = False
        """Whether it stays for as long as somebody waits for the command: any byte lets go of it."""
        self.until = time.monotonic() + _REQUEST_SECONDS

    def fetch(self, size: int) -> bytes:
        """Bytes to be written: those that came with the request, then those that have come since."""
        if self.request:
            data, self.request = self.request[:size], self.request[size:]
            return data
        return self.receive(size)

    def receive(self, size: int) -> bytes:
        """What has come; nothing at the end, too."""
        with contextlib.suppress(OSError):
            return self.connection.recv(size)
        return b""

    def send(self, data: bytes) -> None:
        """Answers: a line has room, or the other side is gone."""
        with contextlib.suppress(OSError):
            self.connection.send(data)


def _is_ours(connection: socket.socket) -> bool:
    """Whether it is this user who speaks; others cannot get into the folder anyway."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(credentials)[1] == os.geteuid()
