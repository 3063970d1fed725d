"""Connections with a handshake: whose answer is whose, and who makes room for whom."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from http_process import PATIENCE, HttpProcess
from plain_http import Session, call, hears, message, told

from handrail.mcp.http.middleware import Middleware

_LONG = {"command": "echo begun; sleep 600"}
_READ = {"path": "a.txt"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    with HttpProcess(tmp_path_factory.mktemp("handshakes"), "--mode", "full") as one:
        (one.workspace / "a.txt").write_text("a\n")
        yield one


def test_an_id_that_is_on_its_way_is_nobody_elses_also_when_its_client_hung_up(server: HttpProcess) -> None:
    with Session(server) as client:
        with client.begin(call("exec", _LONG, 7, _meta={"progressToken": 1})) as first:
            hears(first, b"begun")
            for same in (7, "7"):
                refused = client.post(call("read", _READ, same))
                assert refused.status_code == 400
                assert told(refused)[0]["id"] == same
                assert (
                    "a request with this id is still running; use each id once." in told(refused)[0]["error"]["message"]
                )
            assert client.result(call("read", _READ, 8))["content"][0]["text"] == "a\n"
        assert client.post(call("read", _READ, 7)).status_code == 400
        client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        until = time.monotonic() + PATIENCE
        while (again := client.post(call("read", _READ, 7))).status_code == 400:
            assert time.monotonic() < until
        assert told(again)[-1]["result"]["content"][0]["text"] == "a\n"


def test_other_connections_have_the_same_ids(server: HttpProcess) -> None:
    with Session(server) as one, Session(server) as other:
        with one.begin(call("exec", _LONG, 7, _meta={"progressToken": 1})) as first:
            hears(first, b"begun")
            assert other.result(call("read", _READ, 7))["content"][0]["text"] == "a\n"
        one.web.delete(server.url)


def test_a_message_that_is_too_deep_is_refused_as_what_it_is(server: HttpProcess) -> None:
    deep = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%s}' % (b"[" * 100_000)
    with Session(server) as client:
        refused = client.web.post(server.url, content=deep, headers={"content-type": "application/json"})
    assert (refused.status_code, told(refused)[0]["error"]["code"]) == (400, -32700)


def test_who_asks_for_what_it_missed_gets_what_comes(server: HttpProcess) -> None:
    with Session(server) as client, client.web.stream("GET", server.url, headers={"last-event-id": "1"}) as stream:
        assert (stream.status_code, stream.headers["content-type"].split(";")[0]) == (200, "text/event-stream")


def test_who_gives_up_while_it_is_asked_for_its_folders_is_asked_again(server: HttpProcess) -> None:
    with Session(server, roots={}) as client:
        with client.begin(message("tools/list", number=7)) as first:
            hears(first, b"roots/list")
            client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
            hears(first, b"\r\n0\r\n")  # the whole answer: that it was cancelled
        with client.begin(message("tools/list")) as second:
            hears(second, b"roots/list")
        client.web.delete(server.url)


class _Server:
    """Opens a session for each request without one, and knows which are ended."""

    def __init__(self) -> None:
        self.ended: list[bytes] = []
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope["headers"])
        headers: list[tuple[bytes, bytes]] = []
        if scope["method"] == "DELETE":
            self.ended.append(given[b"mcp-session-id"])
        elif not {b"mcp-session-id", b"mcp-protocol-version"} & set(given):
            self.asked += 1
            headers.append((b"mcp-session-id", b"%d" % self.asked))
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


async def _post(app: Any, receive: Any = None, **headers: str) -> None:
    async def nothing_more() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(_: Any) -> None:
        pass

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await app({"type": "http", "method": "POST", "path": "/mcp", "headers": given}, receive or nothing_more, send)


def test_the_connection_that_was_idle_for_the_longest_time_makes_room() -> None:
    async def come_and_go() -> None:
        going_on, may_end = asyncio.Event(), asyncio.Event()

        async def slowly() -> dict[str, Any]:
            going_on.set()
            await may_end.wait()
            return {"type": "http.request", "body": b""}

        for _ in range(3):
            await _post(app)
        at_work = asyncio.ensure_future(_post(app, slowly, mcp_session_id="1"))
        await going_on.wait()
        await _post(app, mcp_session_id="2")
        await _post(app, mcp_protocol_version="2026-07-28")
        assert server.ended == []
        await _post(app)
        assert server.ended == [b"3"]
        may_end.set()
        await at_work

    server = _Server()
    app = Middleware(server, max_sessions=3)
    asyncio.run(come_and_go())
