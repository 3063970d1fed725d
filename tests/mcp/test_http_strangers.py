"""Connections that show no token: whoever opens many and says nothing keeps nobody out."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from http_process import PATIENCE, HttpProcess
from plain_http import Session, message

from handrail.mcp.http.strangers import MOST, Strangers


def _hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_opens_many_connections_and_says_half_a_word_keeps_nobody_out(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server, ExitStack() as hold:
        opened = [
            hold.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) for _ in range(MOST * 2)
        ]
        for one in opened[MOST:]:
            one.sendall(b"POST /mcp HTTP/1.1\r\nHost: x")
        assert all(_hung_up(one) for one in opened[:MOST])
        with Session(server) as client:
            assert client.result(message("tools/list"))["tools"]


def _meet(strangers: Strangers, said: Callable[[Callable[[], Any]], Awaitable[None]]) -> None:
    """Lets somebody open connections to a server that has these strangers: both ends of each."""

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            strangers.come(transport)
            came.put_nowait(transport)

    async def meet() -> None:
        loop = asyncio.get_running_loop()
        async with await loop.create_server(Accepted, "127.0.0.1", 0) as server:

            async def connect() -> tuple[asyncio.StreamReader, Any]:
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                writers.append(writer)
                return reader, await came.get()

            async with asyncio.timeout(PATIENCE):
                await said(connect)
            for writer in writers:
                writer.close()

    came: asyncio.Queue[Any] = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []
    asyncio.run(meet())


def test_who_does_not_show_the_token_in_time_is_hung_up_on() -> None:
    async def said(connect: Callable[[], Any]) -> None:
        reader, _ = await connect()
        assert await reader.read() == b""

    _meet(Strangers(seconds=0.01), said)


def test_the_oldest_stranger_makes_room_and_who_is_known_stays() -> None:
    async def said(connect: Callable[[], Any]) -> None:
        (_, known), (reader, _) = await connect(), await connect()
        strangers.forget(known)
        await connect()
        _, last = await connect()
        assert await reader.read() == b""
        assert not known.is_closing()
        assert not last.is_closing()

    strangers = Strangers(most=2)
    _meet(strangers, said)
