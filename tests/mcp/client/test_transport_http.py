"""The bytes of answers over HTTP: what is passed on, and what is no message and too long to be looked at by others."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.mcp.client.transports import BYTE_RATE, AnswerStream, EventStream, RateLimiter

LONG = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": "x" * 100_000}}).encode()
SHORT = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode()
NONSENSE = json.dumps({"jsonrpc": "2.0", **{f"k{number}": 1 for number in range(10_000)}}).encode()
ENDS = [b"\n", b"\r\n", b"\r"]


class Pieces(httpx2.AsyncByteStream):
    """Bytes that come in pieces of a size."""

    def __init__(self, whole: bytes, size: int) -> None:
        self._whole, self._size = whole, size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._whole), self._size):
            yield self._whole[at : at + self._size]


def read(kind: Any, whole: bytes, size: int = 1 << 16) -> bytes:
    async def all_of_it() -> bytes:
        return b"".join([piece async for piece in kind(Pieces(whole, size), RateLimiter(*BYTE_RATE))])

    return asyncio.run(all_of_it())


@pytest.mark.parametrize("body", [LONG, SHORT, b"", b"<html>not here</html>"])
def test_a_message_and_whatever_is_short_is_passed_on_as_it_is(body: bytes) -> None:
    assert read(AnswerStream, body) == body


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("data", [LONG, SHORT, b"ping"])
def test_events_are_passed_on_as_they_are(data: bytes, end: bytes) -> None:
    whole = end.join([b": hello", b"id: 1", b"data: " + data, b"", b"data: " + data, b"", b""])
    assert read(EventStream, whole) == whole


def test_what_is_long_and_no_message_is_refused() -> None:
    with pytest.raises(httpx2.StreamError, match="not a message"):
        read(AnswerStream, NONSENSE)


@pytest.mark.parametrize("end", ENDS)
@given(size=st.integers(1_000, 100_000))
def test_no_event_is_passed_on_that_is_long_and_no_message(end: bytes, size: int) -> None:
    whole = end.join([b"data: " + SHORT, b"", b"data: " + NONSENSE, b"", b""])
    with pytest.raises(httpx2.StreamError, match="not a message"):
        read(EventStream, whole, size)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("size", [999, 1_000, 4_096])
def test_nor_one_that_comes_in_many_lines(end: bytes, size: int) -> None:
    lines = [b"data: " + NONSENSE[at : at + 993] for at in range(0, len(NONSENSE), 993)]
    with pytest.raises(httpx2.StreamError, match="not a message"):
        read(EventStream, end.join([*lines, b"", b""]), size)


def test_an_answer_has_an_end() -> None:
    with pytest.raises(httpx2.StreamError, match="more than 8,388,608 bytes"):
        read(AnswerStream, b" " * (9 << 20))
    with pytest.raises(httpx2.StreamError, match="more than 8,388,608 bytes"):
        read(EventStream, b"x" * (18 << 20))
