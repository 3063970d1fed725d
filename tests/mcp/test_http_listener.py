"""Connections that show no token: whoever opens many and says nothing keeps nobody out."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from http_process import PATIENCE, HttpProcess
from plain_http import Session, hears, message
from uvicorn.server import ServerState

from handrail.mcp.http.listener import MAX_UNAUTHENTICATED_CONNECTIONS, ConnectionAcceptor, UnauthenticatedLimit


def _hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_opens_many_connections_and_says_half_a_word_keeps_nobody_out(tmp_path: Path) -> None:
    more = 50
    with HttpProcess(tmp_path) as server, ExitStack() as hold:
        address = ("127.0.0.1", server.port)
        opened = [
            hold.enter_context(socket.create_connection(address, PATIENCE))
            for _ in range(MAX_UNAUTHENTICATED_CONNECTIONS + more)
        ]
        for one in opened[more // 2 :]:
            one.sendall(b"POST /mcp HTTP/1.1\r\nHost: x")
        assert all(_hung_up(one) for one in opened[:more])
        with Session(server) as client:
            assert client.result(message("tools/list"))["tools"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    """One for the tests that leave it as it was."""
    with HttpProcess(tmp_path_factory.mktemp("server")) as one:
        yield one


def _stop(server: HttpProcess) -> None:
    """Stops the process, and returns when it has stopped."""
    server.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.process.pid, os.WSTOPPED | os.WNOWAIT)


def test_a_burst_of_300_connections_with_the_token_loses_none(server: HttpProcess) -> None:
    with Session(server) as client, ExitStack() as hold:
        _stop(server)
        waiting = [hold.enter_context(client.begin(message("ping"))) for _ in range(300)]
        server.process.send_signal(signal.SIGCONT)
        for one in waiting:
            hears(one, b'"result"')


def test_300_clients_that_connect_first_and_speak_later_are_all_answered(server: HttpProcess) -> None:
    with Session(server) as client, ExitStack() as hold:
        address = ("127.0.0.1", server.port)
        opened = [hold.enter_context(socket.create_connection(address, PATIENCE)) for _ in range(300)]
        for one in opened:
            one.sendall(client.request(message("ping")))
        for one in opened:
            hears(one, b'"result"')


_REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def _meet(strangers: UnauthenticatedLimit, said: Callable[[Callable[[], Any]], Awaitable[None]]) -> None:
    """Lets somebody open connections to a server with these strangers. Every whole request shows the token there."""

    async def app(_: object, __: object, send: Callable[[Any], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def meet() -> None:
        config = uvicorn.Config(
            strangers.wrap_authenticated(app), http="h11", ws="none", lifespan="off", log_config=None
        )
        given: dict[str, Any] = {"config": config, "server_state": ServerState(), "app_state": {}}
        with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as opened:
            entrance = ConnectionAcceptor(listening, strangers, given)

            async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                reader, writer = await asyncio.open_connection(*listening.getsockname())
                opened.callback(writer.close)
                return reader, writer

            async with asyncio.timeout(PATIENCE):
                await said(connect)
            entrance.close()

    asyncio.run(meet())


async def _answer(reader: asyncio.StreamReader) -> None:
    assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")


def test_who_does_not_show_the_token_in_time_is_hung_up_on() -> None:
    async def said(connect: Callable[[], Any]) -> None:
        reader, _ = await connect()
        assert await reader.read() == b""

    _meet(UnauthenticatedLimit(seconds=0.01), said)


def test_the_oldest_stranger_makes_room_and_who_is_known_stays() -> None:
    async def said(connect: Callable[[], Any]) -> None:
        known, say = await connect()
        say.write(_REQUEST)
        await _answer(known)
        (oldest, _), (_, _), (last, ask) = await connect(), await connect(), await connect()
        assert await oldest.read() == b""
        say.write(_REQUEST)
        ask.write(_REQUEST)
        await _answer(known)
        await _answer(last)

    _meet(UnauthenticatedLimit(max_connections=2, crowded_seconds=0), said)


def test_who_finds_no_room_waits_and_is_answered_when_there_is_some() -> None:
    async def said(connect: Callable[[], Any]) -> None:
        (first, slow), (second, quick) = await connect(), await connect()
        quick.write(_REQUEST)
        slow.write(_REQUEST)
        await _answer(first)
        await _answer(second)

    _meet(UnauthenticatedLimit(max_connections=1, crowded_seconds=PATIENCE), said)
