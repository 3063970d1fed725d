"""Who is let in over HTTP: this machine alone, no foreign page, and only with the token."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_process import TOKEN, HttpProcess
from hypothesis import given
from hypothesis import strategies as st

from handrail.mcp.http.guard import Address, Guard, parse_address
from handrail.protocol.errors import UsageError

_NAMES = Address("127.0.0.1", 7421).names()
_GOOD = {"host": "127.0.0.1:7421", "authorization": f"Bearer {TOKEN}"}
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}},
}
_ACCEPT = {"accept": "application/json, text/event-stream"}


def _status(*headers: tuple[str, str], path: str = "/mcp") -> int:
    """What the guard says to a request with these headers; 0 where it lets it through."""
    scope = {"type": "http", "path": path, "headers": [(key.encode(), value.encode()) for key, value in headers]}
    refusal = Guard(_unreached, _NAMES, TOKEN).check(scope)
    return 0 if refusal is None else refusal.status


async def _unreached(*_: object) -> None:
    raise AssertionError("the guard let it through")


def _with(**headers: str) -> int:
    return _status(*{**_GOOD, **headers}.items())


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":7421", ("127.0.0.1", 7421)),
        ("localhost:0", ("127.0.0.1", 0)),
        ("127.0.0.1:7421", ("127.0.0.1", 7421)),
        ("127.8.9.10:1", ("127.8.9.10", 1)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_address_of_this_machine_alone_is_taken(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.0:80",
        "[::]:80",
        "192.168.1.2:80",
        "example.org:80",
        "127.0.0.1.example.org:80",
        "::1:80",
        "[::1",
        "*:80",
        "[127.0.0.1]:80",
    ],
)
def test_any_other_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--http .*127\.0\.0\.1:PORT"):
        parse_address(text)


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:٣"]
)
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not HOST:PORT;"):
        parse_address(text)


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="cannot be listened on"):
        Address("127.0.0.1", taken.getsockname()[1]).listen()


def test_what_is_sent_is_not_held_back_until_more_comes() -> None:
    async def sent_at_once(listening: socket.socket) -> bool:
        loop = asyncio.get_running_loop()
        found = loop.create_future()

        class Accepted(asyncio.Protocol):
            def connection_made(self, transport: Any) -> None:
                option = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                found.set_result(bool(option))
                transport.close()

        async with await loop.create_server(Accepted, sock=listening):
            with socket.create_connection(listening.getsockname()):
                return await found

    with Address("127.0.0.1", 0).listen() as listening:
        assert asyncio.run(sent_at_once(listening))


@pytest.mark.parametrize("host", ["127.0.0.1:7421", "localhost:7421", "LOCALHOST:7421", "[::1]:7421"])
def test_every_name_of_this_machine_for_itself_is_let_in(host: str) -> None:
    assert _with(host=host) == 0
    assert _with(host=host, origin=f"http://{host}") == 0


@pytest.mark.parametrize(
    "host",
    [
        "example.org",
        "example.org:7421",
        "127.0.0.1",
        "127.0.0.1:7422",
        "127.0.0.1:7421.example.org",
        "localhost.example.org:7421",
        "",
    ],
)
def test_a_foreign_host_is_refused_before_all_else(host: str) -> None:
    assert _with(host=host) == 421
    assert _with(host=host, origin="http://example.org", authorization="") == 421


def test_a_request_has_one_host() -> None:
    assert _status(("authorization", f"Bearer {TOKEN}")) == 421
    assert _status(("host", "127.0.0.1:7421"), ("host", "127.0.0.1:7421"), ("authorization", f"Bearer {TOKEN}")) == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://example.org",
        "https://127.0.0.1:7421",
        "http://127.0.0.1",
        "http://127.0.0.1:7422",
        "null",
        "",
        "file://",
    ],
)
def test_a_foreign_page_is_refused_with_and_without_the_token(origin: str) -> None:
    assert _with(origin=origin) == 403
    assert _with(origin=origin, authorization="") == 403


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ÿ"]
)
def test_without_the_token_nobody_is_let_in(given: str) -> None:
    assert _with(authorization=given) == 401


def test_two_tokens_are_none() -> None:
    assert _status(*_GOOD.items(), ("authorization", f"Bearer {TOKEN}")) == 401


@given(st.binary(max_size=60).filter(lambda data: data.strip() != TOKEN.encode()))
def test_no_other_bytes_are_the_token(data: bytes) -> None:
    scope = {"path": "/mcp", "headers": [(b"host", b"localhost:7421"), (b"authorization", b"Bearer " + data)]}
    refusal = Guard(_unreached, _NAMES, TOKEN).check(scope)
    assert refusal is not None
    assert refusal.status == 401


def test_there_is_one_path_and_only_those_with_the_token_hear_that() -> None:
    assert _status(*_GOOD.items(), path="/") == 404
    assert _status(("host", "localhost:7421"), path="/") == 401


def test_the_real_server_refuses_the_same(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server, httpx2.Client(headers=_ACCEPT, timeout=60) as web:

        def post(body: Any = _INITIALIZE, **headers: str) -> httpx2.Response:
            return web.post(server.url, json=body, headers=headers)

        without = post()
        assert (without.status_code, without.headers["www-authenticate"]) == (401, 'Bearer realm="handrail"')
        assert post(authorization="Bearer wrong").status_code == 401
        given = server.headers["Authorization"]
        assert post(authorization=given, origin="http://example.org").status_code == 403
        assert post(authorization=given, host="example.org").status_code == 421
        assert post(authorization=given).status_code == 200
        assert web.get(server.url.removesuffix("/mcp"), headers=server.headers).status_code == 404
        preflight = web.options(server.url, headers={"origin": f"http://localhost:{server.port}"})
        assert preflight.status_code == 401
        assert not [name for name in preflight.headers if name.startswith("access-control")]
        large = post({**_INITIALIZE, "padding": "x" * (17 << 20)}, authorization=given)
        assert large.status_code == 413
        assert post(authorization=given).status_code == 200


def test_a_large_body_that_does_not_say_so_is_cut_off(tmp_path: Path) -> None:
    async def pieces() -> Any:
        for _ in range(40):
            yield b"x" * (1 << 20)

    async def post(server: HttpProcess) -> int:
        async with httpx2.AsyncClient(headers={**_ACCEPT, **server.headers}, timeout=60) as web:
            try:
                answer = await web.post(server.url, content=pieces(), headers={"content-type": "application/json"})
            except httpx2.TransportError:
                return 413  # it hung up while we were still sending
            return answer.status_code

    with HttpProcess(tmp_path) as server:
        assert asyncio.run(post(server)) == 413
