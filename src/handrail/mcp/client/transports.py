"""Connections to servers by pipes or HTTP, with bounds on everything that a server sends.

A server is a stranger. The SDK makes several errors of each part of a wrong message: a message of a few megabytes
would take half a minute, gigabytes, and the time of all other threads. So messages are checked before it gets them.
"""

import asyncio
import codecs
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, cast

import anyio
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic_core import from_json

from handrail import ForeignTool, ServerProgram
from handrail.protocol.jsonrpc import LineSplitter, repair_line

MAX_MESSAGE_BYTES = 8 << 20
BYTE_RATE = (32 << 20, float(2 << 20))
"""Bytes of a server: at once, and a second."""
_MESSAGE_RATE = (1_000, 500.0)
_REQUEST_RATE = (64, 2.0)
_STREAM_RATE = (8, 1.0)
"""How often a stream that the server ended is opened again."""
_MIN_CHECKED_BYTES = 64 << 10
"""Larger answers over HTTP are parsed before the SDK gets them."""
_MAX_ANSWER_PARTS = 10_000
_OPAQUE = frozenset({"structuredContent", "inputSchema", "outputSchema", "_meta"})
"""Fields that the SDK does not look into. They may have any number of parts."""
_MAX_GARBAGE_LINES = 1_000
"""Lines in a row that are no messages."""
_READ_BYTES = 1 << 16
_READ_TIMEOUT_SECONDS = 30.0
"""Seconds in which a server has to read some of what it is sent."""
_CONNECT_SECONDS = 10.0
_UNAUTHORIZED = 401
_PLAIN = "identity"
"""No compression: a few bytes could become any number."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_FIELDS = ("jsonrpc", "id", "method", "params", "result", "error")
_NO_MESSAGE = "the answer is not a message"


class CloseReason:
    """Why a connection ended. The first reason counts, because later ones follow from it. Not thread-safe."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.final = False
        """Whether a new connection would not help."""
        self.was_up = False
        self.sure = False
        """Whether this side ended the connection for that reason. Then the exit code of the program says nothing."""
        self._vague = False
        self._ended = asyncio.Event()

    def note(self, reason: str, *, final: bool = False, vague: bool = False, sure: bool = False) -> None:
        """Ends the connection. A later reason replaces a vague one."""
        if self.reason is None or (self._vague and not vague):
            self.reason, self.final, self.sure, self._vague = reason, final, sure, vague
        self._ended.set()

    async def wait(self) -> None:
        await self._ended.wait()


class RateLimiter:
    """Allows a number at once, and so many a second after that."""

    def __init__(self, at_once: int, a_second: float) -> None:
        self._most, self._a_second = float(at_once), a_second
        self._left = float(at_once)
        self._at = 0.0

    def wait(self, now: float, count: int = 1) -> float:
        """Takes a number. Returns how many seconds to wait first."""
        self._left = min(self._most, self._left + (now - self._at) * self._a_second) if self._at else self._left
        self._at = now
        self._left -= count
        return 0.0 if self._left >= 0 else -self._left / self._a_second


# Messages


def parse_message(line: bytes) -> JSONRPCMessage | None:
    """The message of a line, also if the server cut a text inside of a character. None if it is no message."""
    text = line.strip().removeprefix(codecs.BOM_UTF8)
    if not text.startswith(b"{"):  # a long list would become very many objects
        return None
    fields = _decode(text) or _decode(repair_line(text))
    message = {name: fields[name] for name in _FIELDS if name in fields}
    try:
        return jsonrpc_message_adapter.validate_python(message, by_name=False) if _is_message(message) else None
    except ValueError:
        return None


def _decode(text: bytes) -> dict[str, Any]:
    try:
        value: Any = from_json(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_message(fields: Mapping[str, Any]) -> bool:
    """Checks the shape before the SDK does. Its ids have no bound."""
    has_id = isinstance(fields.get("id"), str | int) and not isinstance(fields["id"], bool)
    if fields.get("jsonrpc") != "2.0":
        return False
    if "method" in fields:
        is_call = isinstance(fields["method"], str) and isinstance(fields.get("params"), dict | None)
        return is_call and (has_id or "id" not in fields)
    if "result" in fields:
        return has_id and isinstance(fields["result"], dict)
    return isinstance(fields.get("error"), dict) and (has_id or fields.get("id") is None)


def limit_message(one: SessionMessage) -> SessionMessage | None:
    """The message as the SDK gets it. None: it is dropped."""
    message = one.message
    match message:
        case JSONRPCRequest() if message.method != "ping":
            # The client refuses all of them, so their params are not read.
            return replace(one, message=message.model_copy(update={"params": None}))
        case JSONRPCResponse() if _has_too_many_tools(message.result):
            # One more than accepted, so that the listing notices.
            tools = message.result["tools"][: ForeignTool.MAX_LISTED + 1]
            some = message.model_copy(update={"result": {**message.result, "tools": tools}})
            return limit_message(replace(one, message=some))
        case JSONRPCResponse() if has_too_many_parts(message.result):
            error = ErrorData(code=INTERNAL_ERROR, message=f"its answer has more than {_MAX_ANSWER_PARTS:,} parts")
            return replace(one, message=JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
        case JSONRPCNotification() if has_too_many_parts(message.params):
            return None
        case _:
            return one


def _has_too_many_tools(result: dict[str, Any]) -> bool:
    tools = result.get("tools")
    return isinstance(tools, list) and len(cast("list[Any]", tools)) > ForeignTool.MAX_LISTED + 1


def has_too_many_parts(value: Any) -> bool:
    """Whether a JSON value has too many parts at any depth."""
    left, waiting = _MAX_ANSWER_PARTS, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            known = cast("dict[str, Any]", one)
            left -= len(known)
            inner = [part for name, part in known.items() if name not in _OPAQUE] if left >= 0 else []
        elif isinstance(one, list):
            inner = cast("list[Any]", one)
            left -= len(inner)
        else:
            continue
        if left < 0:
            return True
        waiting += inner
    return False


@asynccontextmanager
async def limit_rate(
    transport: AbstractAsyncContextManager[TransportStreams], end: CloseReason
) -> AsyncGenerator[TransportStreams]:
    """The transport with bounded messages, so many a second. Surplus requests are dropped."""
    async with transport as (source, sink):
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with to_session, from_server, anyio.create_task_group() as tasks:

            async def pass_on() -> None:
                clock = asyncio.get_running_loop().time
                messages, requests = RateLimiter(*_MESSAGE_RATE), RateLimiter(*_REQUEST_RATE)
                async with to_session:
                    async for one in source:
                        if (pause := messages.wait(clock())) > 0:
                            await asyncio.sleep(pause)
                        if not isinstance(one, SessionMessage):
                            continue
                        if isinstance(one.message, JSONRPCRequest) and requests.wait(clock()) > 0:
                            continue
                        if (message := limit_message(one)) is not None:
                            await to_session.send(message)
                end.note("it ended the connection", vague=True)

            tasks.start_soon(pass_on)
            try:
                yield from_server, sink
            finally:
                tasks.cancel_scope.cancel()


# Pipes


@asynccontextmanager
async def open_pipes(program: ServerProgram, end: CloseReason) -> AsyncGenerator[TransportStreams]:
    """The streams of a session with a program. `end` gets the reason when the program stops talking."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with to_session, from_server, to_server, from_session, anyio.create_task_group() as tasks:

        async def listen() -> None:
            async with to_session:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for message in _read_messages(program.output, end):
                        await to_session.send(SessionMessage(message))
            end.note("it closed its output", vague=True)

        async def talk() -> None:
            async for sent in from_session:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                if not await _write(program.input, line, end):
                    break
            await to_session.aclose()

        tasks.start_soon(listen)
        tasks.start_soon(talk)
        try:
            yield from_server, to_server
        finally:
            tasks.cancel_scope.cancel()


async def _read_messages(output: int, end: CloseReason) -> AsyncIterator[JSONRPCMessage]:
    garbage = 0
    async for line in _read_lines(output):
        if line is None:
            end.note(f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes", sure=True)
            return
        message = parse_message(line)
        garbage = 0 if message is not None else garbage + bool(line.strip())
        if message is not None:
            yield message
        elif garbage > _MAX_GARBAGE_LINES:
            end.note("it writes lines to its output that are not messages", sure=True)
            return


async def _read_lines(output: int) -> AsyncIterator[bytes | None]:
    lines, rate = LineSplitter(MAX_MESSAGE_BYTES), RateLimiter(*BYTE_RATE)
    while data := await _read(output):
        await asyncio.sleep(rate.wait(asyncio.get_running_loop().time(), len(data)))
        for line in lines.feed(data):
            yield line
        if lines.is_oversized:
            yield None


async def _read(output: int) -> bytes:
    """The next bytes. None at the end."""
    while True:
        try:
            return os.read(output, _READ_BYTES)
        except BlockingIOError:
            await _wait_until_ready(output, writing=False)
        except OSError:
            return b""


async def _write(given: int, data: bytes, end: CloseReason) -> bool:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(given, left) :]
        except BlockingIOError:
            try:
                async with asyncio.timeout(_READ_TIMEOUT_SECONDS):
                    await _wait_until_ready(given, writing=True)
            except TimeoutError:
                end.note(f"it has not read its input for {_READ_TIMEOUT_SECONDS:.0f} seconds", sure=True)
                return False
        except OSError:  # the program has ended
            return False
    return True


async def _wait_until_ready(descriptor: int, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    (loop.add_writer if writing else loop.add_reader)(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        (loop.remove_writer if writing else loop.remove_reader)(descriptor)


# HTTP


@asynccontextmanager
async def open_http(
    url: str, headers: tuple[tuple[str, str], ...], seconds: float, end: CloseReason
) -> AsyncGenerator[TransportStreams]:
    """The streams of a session with a server at an address. The SDK follows no redirects to elsewhere."""
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=max(seconds, _CONNECT_SECONDS) + _CONNECT_SECONDS)
    async with (
        _BoundedHttpClient(headers=[*headers, ("Accept-Encoding", _PLAIN)], timeout=timeout, end=end) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


class _BoundedHttpClient(httpx2.AsyncClient):
    def __init__(self, *, end: CloseReason, **options: Any) -> None:
        super().__init__(**options)
        self._end = end
        self._streams, self._bytes = RateLimiter(*_STREAM_RATE), RateLimiter(*BYTE_RATE)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method == "GET":
            await asyncio.sleep(self._streams.wait(asyncio.get_running_loop().time()))
        response = await super().send(request, **options)
        if response.status_code == _UNAUTHORIZED:
            self._end.note(
                "it needs authentication (401); OAuth is not supported here: put a token into its headers",
                final=True,
            )
        if response.headers.get("content-encoding", _PLAIN) != _PLAIN:
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, which was not requested", request=request)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = (EventStream if is_stream else AnswerStream)(response.stream, self._bytes)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, rate: RateLimiter) -> None:
        self._stream, self._rate = stream, rate

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _read(self) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        async for piece in self._stream:
            await asyncio.sleep(self._rate.wait(clock(), len(piece)))
            yield piece


class AnswerStream(_BoundedStream):
    """An answer that is one message."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = bytearray()
        async for piece in self._read():
            whole += piece
            if len(whole) > MAX_MESSAGE_BYTES:
                raise httpx2.StreamError(f"the answer has more than {MAX_MESSAGE_BYTES:,} bytes")
        if len(whole) > _MIN_CHECKED_BYTES and parse_message(bytes(whole)) is None:
            raise httpx2.StreamError(_NO_MESSAGE)
        yield bytes(whole)


class EventStream(_BoundedStream):
    """A stream of events, each of them a message. The SDK bounds their length."""

    def __init__(self, stream: Any, rate: RateLimiter) -> None:
        super().__init__(stream, rate)
        self._line, self._pending_cr = bytearray(), b""
        self._data_bytes = 0
        """Bytes of the earlier data lines of the event."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._read():
            self._take(piece)
            yield piece

    def _take(self, piece: bytes) -> None:
        text = self._pending_cr + piece
        self._pending_cr = b"\r" if text.endswith(b"\r") else b""  # its line feed may come with the next piece
        first, *others = _LINE_END.split(text.removesuffix(self._pending_cr))
        self._line += first
        for rest in others:
            self._check_line()
            self._line = bytearray(rest)
        if len(self._line) > 2 * MAX_MESSAGE_BYTES:
            raise httpx2.StreamError(f"an event has more than {MAX_MESSAGE_BYTES:,} bytes")

    def _check_line(self) -> None:
        """Checks a complete line. A long message has to be on one line."""
        if not self._line.startswith(b"data:"):
            self._data_bytes = self._data_bytes if self._line else 0
            return
        before, self._data_bytes = self._data_bytes, self._data_bytes + len(self._line)
        if self._data_bytes > _MIN_CHECKED_BYTES and (before or parse_message(bytes(self._line[5:])) is None):
            raise httpx2.StreamError(_NO_MESSAGE)
