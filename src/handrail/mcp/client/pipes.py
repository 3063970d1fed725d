"""Messages over the pipes of a program: a line is a message, and no line is endless."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage

from handrail.mcp.client.ends import CloseReason
from handrail.mcp.client.pace import BYTE_RATE, RateLimiter
from handrail.mcp.client.reading import parse_message
from handrail.runtime.foreign.server_process import ServerProgram

MAX_LINE_BYTES = 8 << 20
"""Bytes of one message."""
_MAX_GARBAGE_LINES = 1_000
"""Lines in a row that are no messages, from one who talks to itself on stdout."""
_READ_BYTES = 1 << 16
_SECONDS_TO_READ = 30.0
"""In which a server has to take something of what it is sent."""


@asynccontextmanager
async def open_pipes(program: ServerProgram, end: CloseReason) -> AsyncGenerator[TransportStreams]:
    """The streams that a session works on; `end` is told when the program says nothing more, and why."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with to_session, from_server, to_server, from_session, anyio.create_task_group() as tasks:

        async def listen() -> None:
            async with to_session:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for message in _messages(program.output, end):
                        await to_session.send(SessionMessage(message))
            end.note("it closed its output", vague=True)

        async def talk() -> None:
            async for sent in from_session:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                if not await _written(program.input, line, end):
                    break
            await to_session.aclose()

        tasks.start_soon(listen)
        tasks.start_soon(talk)
        try:
            yield from_server, to_server
        finally:
            tasks.cancel_scope.cancel()


async def _messages(output: int, end: CloseReason) -> AsyncIterator[JSONRPCMessage]:
    garbage = 0
    async for line in _lines(output, end):
        message = parse_message(line)
        if message is None:
            garbage += bool(line.strip())
            if garbage > _MAX_GARBAGE_LINES:
                end.note("it writes lines to its output that are no messages", sure=True)
                return
            continue
        garbage = 0
        yield message


async def _lines(output: int, end: CloseReason) -> AsyncIterator[bytes]:
    parts: list[bytes] = []
    size, pace = 0, RateLimiter(*BYTE_RATE)
    while data := await _read(output):
        await asyncio.sleep(pace.wait(asyncio.get_running_loop().time(), len(data)))
        first, *others = data.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > MAX_LINE_BYTES:
            end.note(f"it sent a message of more than {MAX_LINE_BYTES:,} bytes", sure=True)
            return
        for rest in others:
            yield b"".join(parts)
            parts, size = [rest], len(rest)


async def _read(output: int) -> bytes:
    """What there is, once there is something; nothing at the end."""
    while True:
        try:
            return os.read(output, _READ_BYTES)
        except BlockingIOError:
            await _ready(output, writing=False)
        except OSError:
            return b""


async def _written(given: int, data: bytes, end: CloseReason) -> bool:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(given, left) :]
        except BlockingIOError:
            try:
                async with asyncio.timeout(_SECONDS_TO_READ):
                    await _ready(given, writing=True)
            except TimeoutError:
                end.note(f"it has read nothing of what it was sent for {_SECONDS_TO_READ:.0f} seconds", sure=True)
                return False
        except OSError:  # it is gone
            return False
    return True


async def _ready(descriptor: int, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    (loop.add_writer if writing else loop.add_reader)(descriptor, tell)
    try:
        await ready
    finally:
        (loop.remove_writer if writing else loop.remove_reader)(descriptor)
