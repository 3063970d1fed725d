"""The socket of a keeper, on which the runtime asks it to write, to stop, or to end with the caller."""

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Callable

from handrail.process.keeper.state import SOCKET, VERSION, Json
from handrail.process.keeper.terminal import InputQueue, PendingInput

READ, WRITE, ENDED = select.POLLIN, select.POLLOUT, select.POLLHUP

_MAX_REQUEST_BYTES = 4096
_RECEIVE_BYTES = 1 << 16
_MAX_CLIENTS = 64
_REQUEST_SECONDS = 10.0
"""Time in which a request has to arrive."""
_CREDENTIALS = struct.Struct("3i")


class KeeperServer:
    """Listens in the session folder, for this user alone."""

    def __init__(
        self, folder: int, events: "EventPoller", stop: Callable[[str], None], input_queue: InputQueue
    ) -> None:
        self._events = events
        self._stop = stop
        self._input = input_queue
        self._clients: dict[int, _KeeperClient] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        umask = os.umask(0o177)
        try:
            self._socket.bind(f"/proc/self/fd/{folder}/{SOCKET}")  # the folder's own path may exceed 108 bytes
        finally:
            os.umask(umask)
        self._socket.listen(_MAX_CLIENTS)
        events.on(self._socket.fileno(), READ, self._accept)

    def pause(self, now: float) -> float:
        """Seconds until the next client is too slow."""
        return min((client.until - now for client in self._clients.values()), default=3600.0)

    def drop_slow_clients(self, now: float) -> None:
        for client in [client for client in self._clients.values() if client.until <= now]:
            self._close(client)

    def _accept(self, _ready: int) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return
        if len(self._clients) >= _MAX_CLIENTS or not _is_this_user(connection):
            connection.close()
            return
        client = _KeeperClient(connection)
        self._clients[client.descriptor] = client
        self._events.on(client.descriptor, READ, lambda ready: self._handle(client, ready))

    def _handle(self, client: "_KeeperClient", ready: int) -> None:
        if client.is_bound:
            is_released = bool(client.receive(1))  # end of file: the caller is gone
            self._close(client)
            if not is_released:
                self._stop("session")
        elif client.is_answered:
            # Read the rest of the request: closing earlier would discard our answer too.
            if not client.receive(_RECEIVE_BYTES):
                self._close(client)
        elif client.input is None:
            self._take_request(client)
        elif ready & ENDED:
            self._close(client)
        else:
            self._events.change(client.descriptor, 0)  # the input queue fetches what arrived

    def _take_request(self, client: "_KeeperClient") -> None:
        data = client.receive(_MAX_REQUEST_BYTES)
        client.received += data
        line, newline, rest = client.received.partition(b"\n")
        if newline:
            client.received = rest
            self._do(client, line)
        elif not data or len(client.received) >= _MAX_REQUEST_BYTES:
            self._close(client)

    def _do(self, client: "_KeeperClient", line: bytes) -> None:
        try:
            request = json.loads(line)
            version, action = request["v"], request["do"]
            if version != VERSION:
                self._answer(client, {"error": "version"})
            elif action == "stop":
                self._stop(str(request["reason"])[:80])
                self._answer(client, {})
            elif action == "await":
                self._answer(client, {})
                client.is_bound, client.until = True, float("inf")
            elif action == "write":
                self._write(client, int(request["size"]), eof=bool(request["eof"]))
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
            client.input = None
            self._answer(client, {"taken": taken} if complete else {"error": "not taken", "taken": taken})

        client.until = float("inf")  # it may have to wait for other writers
        client.input = PendingInput(max(0, size), eof=eof, fetch=fetch, done=done)
        self._events.change(client.descriptor, 0)
        self._input.add(client.input)

    def _answer(self, client: "_KeeperClient", answer: Json) -> None:
        client.send(json.dumps({"v": VERSION, **answer}).encode() + b"\n")
        client.is_answered = True
        client.until = time.monotonic() + _REQUEST_SECONDS
        self._events.change(client.descriptor, READ)

    def _close(self, client: "_KeeperClient") -> None:
        if self._clients.pop(client.descriptor, None) is not None:
            self._events.off(client.descriptor)
            if client.input is not None:
                self._input.remove(client.input)
            client.connection.close()


class _KeeperClient:
    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.descriptor = connection.fileno()
        self.received = b""
        self.input: PendingInput | None = None
        self.is_answered = False
        self.is_bound = False
        """Whether the command ends if this client does."""
        self.until = time.monotonic() + _REQUEST_SECONDS

    def fetch(self, size: int) -> bytes:
        """Bytes to type: those that came with the request, then later ones."""
        if self.received:
            data, self.received = self.received[:size], self.received[size:]
            return data
        return self.receive(size)

    def receive(self, size: int) -> bytes:
        """Empty: nothing arrived, or the client is gone."""
        with contextlib.suppress(OSError):
            return self.connection.recv(size)
        return b""

    def send(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # one line always has room, so the client is gone
            self.connection.send(line)


def _is_this_user(connection: socket.socket) -> bool:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(credentials)[1] == os.geteuid()


class EventPoller:
    """Waits for many descriptors, and calls the handler of each that is ready.

    A handler gets READ or WRITE. If the other side has ended it gets both, with ENDED.
    """

    def __init__(self) -> None:
        self._poller = select.poll()
        self._handlers: dict[int, Callable[[int], None]] = {}

    def on(self, descriptor: int, mask: int, handler: Callable[[int], None]) -> None:
        self._handlers[descriptor] = handler
        self._poller.register(descriptor, mask)

    def change(self, descriptor: int, mask: int) -> None:
        """Wait for something else. 0: only for its end."""
        if descriptor in self._handlers:
            self._poller.modify(descriptor, mask)

    def off(self, descriptor: int) -> None:
        if self._handlers.pop(descriptor, None) is not None:
            self._poller.unregister(descriptor)

    def wait(self, seconds: float) -> None:
        for descriptor, ready in self._poller.poll(max(0.0, seconds) * 1000):
            handler = self._handlers.get(descriptor)
            if handler is not None:
                ended = ready & (select.POLLHUP | select.POLLERR | select.POLLNVAL)
                handler(READ | WRITE | ENDED if ended else ready)
