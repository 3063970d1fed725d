"""Clients over HTTP that do what no client of the SDK would: every byte is said by the test."""

import itertools
import json
import socket
from types import TracebackType
from typing import Any, Self

import httpx2
from http_process import PATIENCE, HttpProcess

_NUMBERS = itertools.count(1_000)
ACCEPT = {"accept": "application/json, text/event-stream"}


def greeting(name: str = "probe", **capabilities: Any) -> dict[str, Any]:
    """The params of `initialize`."""
    info = {"name": name, "version": "1"}
    return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}


def message(method: str, params: Any = None, number: Any = None) -> dict[str, Any]:
    """A request, by an id that no other has."""
    return {"jsonrpc": "2.0", "id": number or next(_NUMBERS), "method": method, "params": params or {}}


def call(name: str, arguments: Any, number: Any = None, **more: Any) -> dict[str, Any]:
    """A request for a tool."""
    return message("tools/call", {"name": name, "arguments": arguments, **more}, number)


def told(answer: httpx2.Response) -> list[dict[str, Any]]:
    """The messages of an answer, however it was sent."""
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines or [answer.text]]


class Session:
    """A connection with a handshake."""

    def __init__(self, server: HttpProcess, name: str = "probe", **capabilities: Any) -> None:
        self.server = server
        self.web = httpx2.Client(headers={**ACCEPT, **server.headers}, timeout=PATIENCE)
        answer = self.web.post(server.url, json=message("initialize", greeting(name, **capabilities)))
        assert answer.status_code == 200, answer.text
        self.web.headers |= {
            "mcp-session-id": answer.headers["mcp-session-id"],
            "mcp-protocol-version": "2025-11-25",
        }
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.web.close()

    def post(self, body: Any) -> httpx2.Response:
        """Sends a message, and waits for the answer."""
        return self.web.post(self.server.url, json=body)

    def result(self, body: Any) -> Any:
        """What a request comes to."""
        return told(self.post(body))[-1]["result"]

    def begin(self, body: Any) -> socket.socket:
        """Sends a request, and leaves it to the caller what to do with the connection."""
        return _send(self.server, self.request(body))

    def request(self, body: Any) -> bytes:
        """The bytes of a request."""
        names = ("accept", "authorization", "mcp-session-id", "mcp-protocol-version")
        headers = {name: self.web.headers[name] for name in names if name in self.web.headers}
        return _request(self.server, body, headers)


def raw(server: HttpProcess, body: Any, headers: dict[str, str]) -> socket.socket:
    """A connection on which a request was sent."""
    return _send(server, _request(server, body, headers))


def _send(server: HttpProcess, request: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    connection.sendall(request)
    return connection


def _request(server: HttpProcess, body: Any, headers: dict[str, str]) -> bytes:
    text = json.dumps(body).encode()
    head = {
        "Host": f"127.0.0.1:{server.port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(text)),
        **headers,
    }
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    return "\r\n".join(lines).encode() + text


def hears(connection: socket.socket, text: bytes) -> None:
    """Waits until a text has come."""
    heard = b""
    while text not in heard:
        more = connection.recv(4096)
        assert more, heard
        heard += more
