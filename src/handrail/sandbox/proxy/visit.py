"""One program's visit to the proxy: one request, one answer."""

import contextlib
import socket
from collections.abc import Callable

from handrail.policy.network.hosts import HostPort, InvalidHost
from handrail.sandbox.proxy.answers import ESTABLISHED, MALFORMED, NOT_REACHED, REFUSED, build_response
from handrail.sandbox.proxy.attempt import Attempt
from handrail.sandbox.proxy.bodies import build_body
from handrail.sandbox.proxy.reaching import ConnectFailure, ProxyConnector
from handrail.sandbox.proxy.relaying import relay
from handrail.sandbox.proxy.request import (
    MalformedError,
    ProxyRequest,
    build_forwarded_head,
    find_named_host,
    parse_request,
)
from handrail.sandbox.proxy.waiting import Deadline, Poller, TooSlowError

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
            self._refuse(client, Attempt(target.host, target.port, server.allowed, server.reason), server.status)
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
