"""Adds the token to requests of a client that cannot be told to send one.

It changes nothing else but its own port to the server's, in Host and in Origin: a foreign Host or Origin reaches the
server's guard as it was sent.
"""

import re
import socket
import threading
from typing import Self

_OWN = re.compile(rb"^(host|origin):", re.IGNORECASE)


class TokenProxy:
    """Listens on a free port of this machine. One request for each connection."""

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
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            data = b""
            while b"\r\n\r\n" not in data:
                piece = client.recv(1 << 16)
                if not piece:
                    return
                data += piece
            head, _, rest = data.partition(b"\r\n\r\n")
            server.sendall(self._with_token(head) + rest)
            threading.Thread(target=_pump, args=(client, server), daemon=True).start()
            _pump(server, client)

    def _with_token(self, head: bytes) -> bytes:
        request, *lines = head.split(b"\r\n")
        own, its = b":%d" % self.port, b":%d" % self._port
        lines = [line.replace(own, its) if _OWN.match(line) else line for line in lines]
        lines = [line for line in lines if not line.lower().startswith(b"connection:")]
        added = (b"Authorization: Bearer " + self._token, b"Connection: close")
        return b"\r\n".join((request, *lines, *added, b"", b""))


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return
