"""Lets a client that only speaks HTTP talk to a server over stdio: the messages are the server's own, word for word.

Only what HTTP adds is made here: sessions (one process for each handshake, one for all that have none), streams, and
the status that an error has. Ids are made different from each other on the way, since several clients share a process.
"""

import itertools
import json
import queue
import subprocess
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_STATUS = {-32600: 400, -32601: 404, -32602: 400, -32700: 400, -32020: 400, -32021: 400, -32022: 400}
_MODERN = "2026-07-28"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_META = {
    "io.modelcontextprotocol/protocolVersion": _MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bridge", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_FIRST = {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {"_meta": _META}}
Start = Callable[[], "subprocess.Popen[bytes]"]


class _Process:
    """A server, and who waits for it to answer."""

    def __init__(self, start: Start) -> None:
        self._process = start()
        self._waiting: dict[int, tuple[Any, queue.Queue[Any]]] = {}
        self._numbers = itertools.count(1_000_000)
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """Sends a notification, or the answer to something that the server asked."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def ask(self, message: dict[str, Any]) -> "queue.Queue[Any]":
        """Sends a request: what the server says from here on, its answer last."""
        number, said = next(self._numbers), queue.Queue[Any]()
        self._waiting[number] = (message["id"], said)
        self.send({**message, "id": number})
        return said

    def end(self) -> None:
        """Closes its input, and waits for it to end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait(60)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout:
            for line in self._process.stdout:
                message = json.loads(line)
                found = None if "method" in message else self._waiting.pop(message.get("id"), None)
                if found is not None:
                    found[1].put({**message, "id": found[0]})
                else:
                    self._notified(message)
        for request_id, said in self._waiting.values():
            said.put({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32000, "message": "The server ended."}})

    def _notified(self, message: dict[str, Any]) -> None:
        """What belongs to a subscription goes to who listens; all else to who asked last."""
        meta = message.get("params", {}).get("_meta", {})
        found = self._waiting.get(meta.get(_SUBSCRIPTION))
        if found is not None:
            meta[_SUBSCRIPTION] = found[0]
        waiting = [found] if found is not None else list(self._waiting.values())[-1:]
        for _, said in waiting:
            said.put(message)


class StdioBridge:
    """Listens on a free port of this machine; starts a server for each handshake."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._sessions: dict[str, _Process] = {}
        self._lock = threading.Lock()
        bridge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                bridge.post(self)

            def do_DELETE(self) -> None:
                bridge.delete(self)

            def do_GET(self) -> None:
                _answer(self, 405)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_port

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for process in self._sessions.values():
            process.end()

    def post(self, request: BaseHTTPRequestHandler) -> None:
        """Hands a message on, and streams what the server says until it is answered."""
        message = json.loads(request.rfile.read(int(request.headers["content-length"])))
        session = request.headers.get("mcp-session-id", "")
        if message.get("method") == "initialize" and request.headers.get("mcp-protocol-version") != _MODERN:
            session = uuid.uuid4().hex
        process = self._process(session)
        if "id" not in message or "method" not in message:
            process.send(message)
            _answer(request, 202)
            return
        said = process.ask(message)
        first = said.get()
        if "error" in first:
            _answer(request, _STATUS.get(first["error"]["code"], 200), json.dumps(first).encode())
            return
        _stream(request, session, first, said)

    def delete(self, request: BaseHTTPRequestHandler) -> None:
        """Ends a session."""
        process = self._sessions.pop(request.headers.get("mcp-session-id", ""), None)
        if process is not None:
            process.end()
        _answer(request, 200 if process is not None else 404)

    def _process(self, session: str) -> _Process:
        with self._lock:
            if session not in self._sessions:
                self._sessions[session] = _Process(self._start)
                if not session:  # the first message on a pipe decides for all: it has no handshake
                    self._sessions[session].ask(_FIRST).get()
            return self._sessions[session]


def _answer(request: BaseHTTPRequestHandler, status: int, body: bytes = b"") -> None:
    request.send_response(status)
    request.send_header("content-length", str(len(body)))
    request.send_header("content-type", "application/json")
    request.end_headers()
    request.wfile.write(body)


def _stream(request: BaseHTTPRequestHandler, session: str, said: dict[str, Any], more: "queue.Queue[Any]") -> None:
    """In chunks: a connection that is closed behind an answer that nobody has read yet is too much for some clients."""
    request.send_response(200)
    request.send_header("content-type", "text/event-stream")
    request.send_header("transfer-encoding", "chunked")
    if session:
        request.send_header("mcp-session-id", session)
    request.end_headers()
    with suppress(OSError):
        while True:
            event = b"event: message\r\ndata: " + json.dumps(said).encode() + b"\r\n\r\n"
            request.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            if "method" not in said:
                break
            said = more.get()
        request.wfile.write(b"0\r\n\r\n")
