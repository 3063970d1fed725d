"""The bytes of a server's answers: bounded, paced, and looked at before the SDK reads them."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from handrail.mcp.client.pace import RateLimiter
from handrail.mcp.client.reading import parse_message

MAX_ANSWER_BYTES = 8 << 20
_MIN_CHECKED_BYTES = 64 << 10
"""Bytes from which on it matters that something is no message: the SDK makes errors of every part of it."""
_ENDING = re.compile(rb"\r\n|\n|\r")
_NO_MESSAGE = "the answer is no message"


class AnswerStream(httpx2.AsyncByteStream):
    """One answer, which is one message, as long as one may be."""

    def __init__(self, stream: Any, pace: RateLimiter) -> None:
        self._stream, self._pace = stream, pace

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = bytearray()
        async for piece in _paced(self._stream, self._pace):
            whole += piece
            if len(whole) > MAX_ANSWER_BYTES:
                raise httpx2.StreamError(f"the answer has more than {MAX_ANSWER_BYTES:,} bytes")
        if len(whole) > _MIN_CHECKED_BYTES and parse_message(bytes(whole)) is None:
            raise httpx2.StreamError(_NO_MESSAGE)
        yield bytes(whole)

    async def aclose(self) -> None:
        await self._stream.aclose()


class EventStream(httpx2.AsyncByteStream):
    """A stream of events, each of them a message. How long one may be, the SDK sees to."""

    def __init__(self, stream: Any, pace: RateLimiter) -> None:
        self._stream, self._pace = stream, pace
        self._line, self._half = bytearray(), b""
        self._data = 0
        """Bytes of the event's lines of data before this one."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in _paced(self._stream, self._pace):
            self._take(piece)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _take(self, piece: bytes) -> None:
        text = self._half + piece
        self._half = b"\r" if text.endswith(b"\r") else b""  # its other half may come with the next piece
        first, *others = _ENDING.split(text.removesuffix(self._half))
        self._line += first
        for rest in others:
            self._look()
            self._line = bytearray(rest)
        if len(self._line) > 2 * MAX_ANSWER_BYTES:
            raise httpx2.StreamError(f"an event has more than {MAX_ANSWER_BYTES:,} bytes")

    def _look(self) -> None:
        """At a line that is complete. A long message is one line: in several, it would have to be put together."""
        if not self._line.startswith(b"data:"):
            self._data = self._data if self._line else 0
            return
        size, before = len(self._line), self._data
        self._data += size
        if self._data > _MIN_CHECKED_BYTES and (before or parse_message(bytes(self._line[5:])) is None):
            raise httpx2.StreamError(_NO_MESSAGE)


async def _paced(stream: Any, pace: RateLimiter) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    async for piece in stream:
        await asyncio.sleep(pace.wait(clock(), len(piece)))
        yield piece
