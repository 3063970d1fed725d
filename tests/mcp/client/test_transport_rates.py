"""Between a server and the session that listens to it: messages wait for their turn, and too many requests are none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from handrail.mcp.client import transports
from handrail.mcp.client.transports import CloseReason


@asynccontextmanager
async def _says(messages: list[Any]) -> AsyncIterator[TransportStreams]:
    """A server that has said all of this already."""
    said, heard = anyio.create_memory_object_stream[SessionMessage | Exception](len(messages))
    answers, unread = anyio.create_memory_object_stream[SessionMessage](0)
    for message in messages:
        said.send_nowait(SessionMessage(message))
    said.close()
    async with heard, answers, unread:
        yield heard, answers


async def _passed_on(messages: list[Any]) -> int:
    async with transports.limit_rate(_says(messages), CloseReason()) as (source, _):
        return len([one async for one in source])


def test_what_a_server_says_too_fast_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(transports, "asyncio", _Clocked(pause))
    news = [JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={})] * 1_100
    assert asyncio.run(_passed_on(news)) == 1_100, "nothing of it is lost"
    assert len(pauses) == 100, "a thousand at once, and the others one by one"
    assert pauses[-1] > pauses[0] > 0


def test_requests_of_a_server_that_asks_too_much_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "asyncio", _Clocked(asyncio.sleep))
    asks = [JSONRPCRequest(jsonrpc="2.0", id=number, method="ping") for number in range(200)]
    assert asyncio.run(_passed_on(asks)) == 64


class _Clocked:
    """What is used of asyncio, with a clock that stands still."""

    Event = asyncio.Event

    def __init__(self, sleep: Any) -> None:
        self.sleep = sleep

    def get_running_loop(self) -> Any:
        return self

    def time(self) -> float:
        return 1.0
