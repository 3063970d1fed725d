"""Adds the token to requests of a client that cannot be told to send one.

It changes nothing else but its own port to the server's, in Host and in Origin: a foreign Host or Origin reaches the
server's guard as it was sent.
"""

import re
import socket
import threading
from contextlib import suppress
from typing import BinaryIO, Self

_LENGTH = re.compile(rb"\ncontent-length: *([0-9]+)", re.IGNORECASE)
_OWN = re.compile(rb"^(host|origin):", re.IGNORECASE)


class TokenProxy:
    """Listens on a free port of this machine. Connections are kept open, as the server keeps them."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token.encode()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as requests, socket.create_connection(("127.0.0.1", self._port)) as server:
            threading.Thread(target=_pump, args=(server, client), daemon=True).start()
            with suppress(OSError):
                while head := _head(requests):
                    server.sendall(self._with_token(head) + requests.read(_length(head)))
                server.shutdown(socket.SHUT_RDWR)

    def _with_token(self, head: bytes) -> bytes:
        request, *lines = head.split(b"\r\n")
        own, its = b":%d" % self.port, b":%d" % self._port
        lines = [line.replace(own, its) if _OWN.match(line) else line for line in lines]
        return b"\r\n".join((request, *lines, b"Authorization: Bearer " + self._token, b"", b""))


def _head(requests: BinaryIO) -> bytes:
    """The request line and the headers of the next request; empty where there is none."""
    lines: list[bytes] = []
    while (line := requests.readline()) not in {b"", b"\r\n"}:
        lines.append(line)
    return b"".join(lines).removesuffix(b"\r\n")


def _length(head: bytes) -> int:
    found = _LENGTH.search(head)
    return int(found[1]) if found else 0


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_RDWR)
