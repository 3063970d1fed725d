"""Servers that are reached over HTTP, and what they may not do with that."""

import http.server
import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

import pytest
from serving import Place, code_of, comes_true

from handrail.mcp.client import supervisor

TOKEN = "sk-tokenforthewebserver1"
Handle = Callable[[http.server.BaseHTTPRequestHandler, dict[str, object]], None]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to wait for what is tried again."""
    monkeypatch.setattr(supervisor, "_PAUSES", (0.01, 0.02, 0.03))


@contextmanager
def web(handle: Handle) -> Generator[int]:
    """A server that handles every POST so; the bodies are messages."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                handle(self, message)
            except OSError:  # who asked has heard enough
                self.close_connection = True

        def do_GET(self) -> None:
            handle(self, {"method": "GET"})

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def status(code: int, **headers: str) -> Handle:
    def handle(request: http.server.BaseHTTPRequestHandler, _: object) -> None:
        request.send_response(code)
        for name, value in {**headers, "content-length": "0"}.items():
            request.send_header(name, value)
        request.end_headers()

    return handle


def honest(request: http.server.BaseHTTPRequestHandler, message: dict[str, object], **results: object) -> None:
    """Answers as a server with one tool does; `results` in the place of what it would say."""
    listed = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    greeting = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "w", "version": "1"},
    }
    known = {"initialize": greeting, "tools/list": listed, "tools/call": {"content": []}, **results}
    if "id" not in message:
        status(405 if message.get("method") == "GET" else 202)(request, message)
        return
    method = str(message["method"])
    told = {"result": known[method]} if method in known else {"error": {"code": -32601, "message": "no"}}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}).encode()
    request.send_response(200)
    request.send_header("content-type", "application/json")
    request.send_header("mcp-session-id", "one")
    request.send_header("content-length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def table(port: int, more: str = "") -> str:
    return f'[mcp.servers.web]\nurl = "http://127.0.0.1:{port}/mcp"\ntimeout = "60s"\n{more}\n'


def problems(place: Place, port: int) -> str:
    (source,) = place.found(table(port)).sources
    try:
        assert source.listed() == ()
        assert comes_true(source.problems)
        return " ".join(source.problems())
    finally:
        source.close()


def test_a_server_that_wants_to_be_signed_in_to_is_left_off_with_words(place: Place) -> None:
    with web(status(401, **{"www-authenticate": "Bearer"})) as port:
        told = problems(place, port)
    assert told == "it needs authentication (401); OAuth is not supported here: put a token into its headers"


def test_the_headers_of_a_server_are_sent_to_it_and_shown_to_nobody(place: Place) -> None:
    seen: list[str | None] = []

    def handle(request: http.server.BaseHTTPRequestHandler, message: dict[str, object]) -> None:
        seen.append(request.headers["authorization"])
        honest(request, message, **{"tools/call": {"content": [{"type": "text", "text": f"you are {TOKEN}"}]}})

    more = 'headers = { Authorization = "Bearer ${WEB_TOKEN}" }'
    with web(handle) as port, place.session(table(port, more), environ={"WEB_TOKEN": TOKEN}) as rail:
        result = rail.call("mcp__web__echo", {})
    assert set(seen) == {f"Bearer {TOKEN}"}
    assert result.content == "you are [Authorization]"
    for file in (place.folder / "state").rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes(), file


def test_nobody_is_sent_elsewhere_with_what_was_meant_for_one(place: Place) -> None:
    asked: list[object] = []
    with ExitStack() as opened:
        elsewhere = opened.enter_context(web(lambda request, message: asked.append(message)))
        port = opened.enter_context(web(status(307, location=f"http://127.0.0.1:{elsewhere}/mcp")))
        told = problems(place, port)
    assert asked == []
    assert "Redirect to" in told


def test_an_endless_answer_is_cut_off(place: Place) -> None:
    def handle(request: http.server.BaseHTTPRequestHandler, message: dict[str, object]) -> None:
        if message.get("method") != "tools/call":
            honest(request, message)
            return
        request.send_response(200)
        request.send_header("content-type", "application/json")
        request.end_headers()
        while True:
            request.wfile.write(b" " * 65536)

    with web(handle) as port, place.session(table(port)) as rail:
        result = rail.call("mcp__web__echo", {})
    assert code_of(result) in {"IO_ERROR", "UNAVAILABLE"}
    assert "more than 8,388,608 bytes" in result.content


def test_a_stream_that_ends_at_once_is_not_opened_again_without_end(place: Place) -> None:
    opened: list[float] = []

    def handle(request: http.server.BaseHTTPRequestHandler, message: dict[str, object]) -> None:
        if message.get("method") != "GET":
            honest(request, message)
            return
        opened.append(time.monotonic())
        request.send_response(200)
        request.send_header("content-type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b"retry: 0\nid: 1\ndata: \n\n")

    with web(handle) as port, place.session(table(port)) as rail:
        assert rail.call("mcp__web__echo", {}).ok
        assert comes_true(lambda: len(opened) >= 9)
        assert rail.call("mcp__web__echo", {}).ok
    assert opened[8] - opened[0] > 0.5


def test_a_packed_answer_is_not_unpacked(place: Place) -> None:
    with web(status(200, **{"content-type": "application/json", "content-encoding": "gzip"})) as port:
        told = problems(place, port)
    assert "compressed, which was not requested" in told


def test_a_call_that_takes_too_long_is_given_up(place: Place) -> None:
    waiting = threading.Event()

    def handle(request: http.server.BaseHTTPRequestHandler, message: dict[str, object]) -> None:
        if message.get("method") == "tools/call":
            waiting.wait(60)
        honest(request, message)

    with web(handle) as port, place.session(table(port).replace("60s", "500 ms")) as rail:
        result = rail.call("mcp__web__echo", {})
        waiting.set()
    assert code_of(result) == "TIMEOUT"


def test_nobody_there_is_said_so(place: Place) -> None:
    with web(honest) as port:
        pass
    assert "cannot be reached" in problems(place, port)
