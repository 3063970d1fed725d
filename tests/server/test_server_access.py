"""Who is let in over HTTP: by which name, from which page, with which token, with how much at once."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request as HttpRequest
from tests.server.serve_process import PATIENCE, TOKEN, ServeProcess
from websockets.exceptions import ConnectionClosed, InvalidStatus

from handrail.mcp.http.guard import Address
from handrail.mcp.http.listener import MAX_UNAUTHENTICATED_CONNECTIONS
from handrail.server.access import SECURITY_HEADERS, RateLimit, ServerNames
from handrail.server.dispatch import read_body
from handrail.server.options import ApiFailure

_BEARER = f"Authorization: Bearer {TOKEN}\r\n".encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """One for the tests that leave it as it was."""
    with ServeProcess(tmp_path_factory.mktemp("access")) as one:
        yield one


def _status(server: ServeProcess, *headers: bytes, line: bytes = b"GET /api/info", body: bytes = b"") -> int:
    """The status of a request with exactly these headers."""
    head = b"".join(header.rstrip(b"\r\n") + b"\r\n" for header in headers)
    answer = server.send(line + b" HTTP/1.1\r\nConnection: close\r\n" + head + b"\r\n" + body)
    return int(answer.split(b" ", 2)[1])


def _host(server: ServeProcess) -> bytes:
    return f"Host: 127.0.0.1:{server.port}".encode()


def test_a_request_has_one_host_and_it_is_an_own_name(server: ServeProcess) -> None:
    port = server.port
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert _status(server, f"Host: {name}:{port}".encode(), _BEARER) == 200
    for name in ("example.org", f"example.org:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1:{port}.example.org"):
        assert _status(server, f"Host: {name}".encode(), _BEARER) == 421
    assert _status(server, _host(server), _host(server), _BEARER) in {400, 421}
    assert _status(server, _host(server), b"Host: example.org", _BEARER) in {400, 421}


@pytest.mark.parametrize("path", ["/", "/api/info", "/healthz", "/ws/x", "/api/login"])
def test_a_foreign_page_is_refused_everywhere(server: ServeProcess, path: str) -> None:
    for origin in ("http://example.org", f"http://127.0.0.1:{server.port + 1}", "null", "file://"):
        line = f"GET {path}".encode()
        assert _status(server, _host(server), _BEARER, f"Origin: {origin}".encode(), line=line) == 403
    own = f"Origin: http://127.0.0.1:{server.port}".encode()
    assert _status(server, _host(server), _BEARER, own) == 200
    assert _status(server, _host(server), _BEARER, own, b"Origin: http://example.org") == 403


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Authorization: Bearer ",
        b"Authorization: Bearer wrong-token-0123456789",
        f"Authorization: Basic {TOKEN}".encode(),
        f"Authorization: {TOKEN}".encode(),
        f"Authorization: Bearer {TOKEN[:-1]}".encode(),
        f"Authorization: Bearer {TOKEN}x".encode(),
        b"Authorization: Bearer \xff\xfe",
        b"Authorization: Bearer " + b"x" * 5_000,
    ],
)
def test_a_request_without_the_right_token_is_refused(server: ServeProcess, header: bytes) -> None:
    assert _status(server, _host(server), *([header] if header else [])) == 401


def test_two_tokens_in_one_request_are_refused(server: ServeProcess) -> None:
    assert _status(server, _host(server), _BEARER, _BEARER) == 401


@pytest.mark.parametrize("name", ["token", "access_token", "Token"])
def test_a_token_in_an_address_is_refused_and_said(server: ServeProcess, name: str) -> None:
    with server.client("") as client:
        refused = client.get(f"/api/info?{name}={TOKEN}")
    assert refused.status_code == 400
    assert "Authorization: Bearer" in refused.json()["message"]
    assert TOKEN not in refused.text
    with pytest.raises(InvalidStatus) as caught:
        server.follow(f"x?{name}={TOKEN}", "")
    assert caught.value.response.status_code == 400


def test_nobody_without_a_token_learns_what_is_there(server: ServeProcess) -> None:
    with server.client("") as client:
        for path in ("/api", "/api/", "/api/tasks/x", "/api/nothing", "/mcp", "/ws/x"):
            assert client.get(path).status_code in {401, 404}, path
        assert client.get("/api/tasks/x").json() == client.get("/api/nothing").json()
        assert client.get("/healthz").json() == {"ok": True}


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../../access.py",
        "/assets/..%5c..%5caccess.py",
        "//etc/passwd",
        "/access.py",
        "/x%00.js",
        "/.%00./access.py",
        "/" + "x/" * 2_000 + "y.js",
    ],
)
def test_no_address_leads_out_of_the_console(server: ServeProcess, path: str) -> None:
    answer = server.send(f"GET {path} HTTP/1.1\r\n".encode() + _host(server) + b"\r\nConnection: close\r\n\r\n")
    assert int(answer.split(b" ", 2)[1]) in {400, 404}
    assert b"root:" not in answer
    assert b"import " not in answer


def test_every_response_has_the_security_headers(server: ServeProcess) -> None:
    expected = dict(SECURITY_HEADERS)
    with server.client() as client, server.client("") as stranger:
        found = [client.get("/api/info"), client.get("/api/nothing"), client.get("/"), client.put("/healthz")]
        found += [stranger.get("/api/info"), client.get("/api/info", headers={"host": "example.org"})]
    for response in found:
        found_here = {name: response.headers[name] for name in expected}
        if response.url.path == "/":  # a built console may be kept, and checked each time
            assert found_here.pop("cache-control") in {"no-cache", "no-store"}
        assert expected | found_here == expected, response.url
        assert "server" not in response.headers
    assert "frame-ancestors 'none'" in expected["content-security-policy"]
    assert "unsafe" not in expected["content-security-policy"]


# Bodies


def test_an_oversized_body_is_refused_declared_or_not(server: ServeProcess) -> None:
    kind, line, limit = b"Content-Type: application/json", b"POST /api/tasks", 1 << 20
    declared = f"Content-Length: {limit + 1}".encode()
    assert _status(server, _host(server), _BEARER, kind, declared, line=line) == 413
    chunk = f"{limit:x}\r\n".encode() + b" " * limit + b"\r\n"
    body = chunk + b"1\r\n \r\n"
    assert _status(server, _host(server), _BEARER, kind, b"Transfer-Encoding: chunked", line=line, body=body) == 413
    body = json.dumps({"token": "x" * 20_000}).encode()
    declared = f"Content-Length: {len(body)}".encode()
    assert _status(server, _host(server), kind, declared, line=b"POST /api/login", body=body) == 413


def test_an_oversized_frame_closes_the_websocket(server: ServeProcess, task: str) -> None:
    with server.follow(task) as opened:
        opened.send("x" * ((1 << 20) + 1))
        with pytest.raises(ConnectionClosed):
            list(opened)
        assert opened.close_code == 1009


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{}", "text/plain", 415),
        (b"{}", "application/x-www-form-urlencoded", 415),
        (b"{", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"prompt": 1}', "application/json", 400),
        (b'{"unknown": 1}', "application/json", 400),
        (b'{"prompt": ""}', "application/json", 400),
    ],
)
def test_a_body_that_is_no_message_is_refused(server: ServeProcess, content: bytes, kind: str, status: int) -> None:
    with server.client() as client:
        refused = client.post("/api/tasks", content=content, headers={"content-type": kind})
    assert (refused.status_code, refused.json()["code"]) == (status, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "after=-1", "after=" + "9" * 30, "state=lost", "x=1", "text=a&text=b"]
)
def test_a_query_that_is_not_declared_is_refused(server: ServeProcess, query: str) -> None:
    with server.client() as client:
        path = "/api/tasks" if "after" not in query else "/api/tasks/x/events"
        assert client.get(f"{path}?{query}").status_code == 400


# The cookie


@pytest.fixture
def page(server: ServeProcess) -> Iterator[httpx2.Client]:
    """A page of the console: it has logged in, and has no token of its own."""
    with server.client("") as client:
        client.headers["origin"] = server.address
        done = client.post("/api/login", json={"token": TOKEN})
        assert done.status_code == 200, done.text
        assert done.json() == {"name": "owner", "role": "admin"}
        yield client


def test_a_page_logs_in_and_out(server: ServeProcess, page: httpx2.Client) -> None:
    cookie = page.post("/api/login", json={"token": TOKEN}).headers["set-cookie"]
    assert cookie.startswith(f"handrail-{server.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert page.get("/api/info").json()["caller"]["role"] == "admin"
    assert page.post("/api/logout").status_code == 204
    assert page.get("/api/info").status_code == 401


def test_a_wrong_token_logs_nobody_in(server: ServeProcess) -> None:
    with server.client("") as client:
        refused = client.post("/api/login", json={"token": "wrong"})
        assert (refused.status_code, "set-cookie" in refused.headers) == (401, False)


def test_a_request_with_the_cookie_changes_nothing_without_the_own_origin(
    server: ServeProcess, page: httpx2.Client
) -> None:
    del page.headers["origin"]
    assert page.get("/api/info").status_code == 200
    assert page.post("/api/redo", json={"preview": True}).status_code == 403
    assert page.delete("/api/tasks/x").status_code == 403
    for origin in ("http://example.org", "null", f"http://localhost:{server.port + 1}"):
        assert page.post("/api/audit/verify", headers={"origin": origin}).status_code == 403
    assert page.post("/api/audit/verify", headers={"origin": server.address}).status_code == 200


def test_a_websocket_with_the_cookie_needs_the_own_origin(server: ServeProcess, page: httpx2.Client) -> None:
    cookie = f"handrail-{server.port}={page.cookies[f'handrail-{server.port}']}"
    for origin in ({}, {"Origin": "http://example.org"}):
        with pytest.raises(InvalidStatus) as caught:
            server.follow("x", "", Cookie=cookie, **origin)
        assert caught.value.response.status_code == 403
    assert _close_code(server, "x", "", Cookie=cookie, Origin=server.address) == 4404


def _close_code(server: ServeProcess, task: str, token: str | None = None, **headers: str) -> int:
    with server.follow(task, token, **headers) as opened, pytest.raises(ConnectionClosed) as caught:
        opened.recv(PATIENCE)
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code


def test_a_websocket_without_a_token_is_closed_with_a_code_that_a_page_can_read(server: ServeProcess) -> None:
    assert _close_code(server, "x", "") == 4401
    assert _close_code(server, "x", "wrong") == 4401
    assert _close_code(server, "x") == 4404


# Limits


def test_a_caller_may_ask_often_but_not_too_often() -> None:
    now = [0.0]
    rates = RateLimit(10, 20, lambda: now[0])
    assert [rates.take("ann") for _ in range(20)] == [0.0] * 20
    assert rates.take("ann") == pytest.approx(0.1)
    assert rates.take("bob") == 0.0
    now[0] = 0.1
    assert rates.take("ann") == 0.0
    assert rates.take("ann") > 0.0


def test_too_many_requests_are_told_when_to_try_again(tmp_path: Path) -> None:
    with (
        ServeProcess(tmp_path, settings="[server]\nrequests = 1\n") as server,
        server.client() as client,
        server.client("") as stranger,
    ):
        for one, first in ((client, 200), (stranger, 401)):
            answers = (one.get("/api/info") for _ in range(5_000))
            refused = next(answer for answer in answers if answer.status_code != first)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


def test_the_own_names_follow_from_the_address_and_the_options() -> None:
    names = ServerNames.build(Address("192.0.2.7", 7420), ("Rail.example.org", "public.example.org:443"))
    assert names.hosts == {
        "192.0.2.7:7420", "rail.example.org", "rail.example.org:7420", "public.example.org:443",
    }  # fmt: skip
    assert "https://public.example.org:443" in names.origins
    assert "https://192.0.2.7:7420" not in names.origins
    assert "https://192.0.2.7:7420" in ServerNames.build(Address("192.0.2.7", 7420), has_tls=True).origins


# Tokens


def test_a_removed_token_counts_no_more_at_once(server: ServeProcess) -> None:
    token = server.add_token("brief", "operator")
    with server.client(token) as client:
        assert client.get("/api/info").json()["caller"] == {"name": "brief", "role": "operator"}
        assert server.command("serve", "tokens", "remove", "brief").returncode == 0
        assert client.get("/api/info").status_code == 401


@pytest.fixture
def task(server: ServeProcess) -> str:
    """A task without a prompt."""
    with server.client() as client:
        return client.post("/api/tasks", json={}).json()["id"]


def test_the_websocket_of_a_removed_token_is_closed(server: ServeProcess, task: str) -> None:
    token = server.add_token("watcher", "viewer")
    with server.follow(task, token) as removed, server.follow(task) as other:
        for one in (removed, other):
            while json.loads(one.recv(PATIENCE))["type"] != "caught_up":
                pass
        assert server.command("serve", "tokens", "remove", "watcher").returncode == 0
        with pytest.raises(ConnectionClosed) as caught:
            removed.recv(PATIENCE)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 4401
        other.ping().wait(PATIENCE)


def test_the_event_stream_of_a_removed_token_ends(server: ServeProcess, task: str) -> None:
    token = server.add_token("reader", "viewer")
    with server.client(token) as client, client.stream("GET", f"/api/tasks/{task}/stream") as stream:
        assert stream.status_code == 200
        assert server.command("serve", "tokens", "remove", "reader").returncode == 0
        with suppress(httpx2.RemoteProtocolError):  # it is cut off
            stream.read()


def test_a_token_has_a_number_of_open_streams(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, settings="[server]\nwebsockets = 2\n") as server:
        with server.client() as client:
            task = client.post("/api/tasks", json={}).json()["id"]
        with server.follow(task) as first, server.follow(task):
            first.recv(PATIENCE)
            assert _close_code(server, task) == 4429
        other = server.add_token("other", "viewer")
        with server.follow(task, other) as own:
            own.recv(PATIENCE)


def test_many_silent_connections_keep_no_client_out(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server, ExitStack() as hold:
        for _ in range(MAX_UNAUTHENTICATED_CONNECTIONS + 50):
            one = hold.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
            one.sendall(b"GET / HTTP/1.1\r\nHost: x")
        with server.client() as client:
            assert client.get("/api/info").status_code == 200


def test_half_a_body_holds_no_request_for_ever() -> None:
    async def say_nothing() -> Any:
        await asyncio.Event().wait()

    http = HttpRequest({"type": "http", "method": "POST", "path": "/", "headers": []}, say_nothing)
    with pytest.raises(ApiFailure) as caught:
        asyncio.run(read_body(http, 100, seconds=0.01))
    assert caught.value.status == 408
