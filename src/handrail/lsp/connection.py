"""The connection to a language server, which belongs to an event loop."""

import asyncio
import itertools
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from handrail.lsp.messages import LspMessage, ResponseError
from handrail.protocol.jsonrpc import METHOD_NOT_FOUND
from handrail.protocol.wire import decode_json

MAX_HEADER_BYTES = 64 << 10
_MAX_MESSAGE_BYTES = 32 << 20
_MAX_UNREAD_BYTES = 64 << 20
"""A server that leaves more unread is ended."""
_BURST_BYTES, _BURST_PAUSE_SECONDS = 1 << 20, 1 / 16
"""The pause after so many bytes, so that a server that floods slows down only itself."""
_MESSAGE_COST = 1024
"""Bytes that each message counts as besides its own."""
NOT_DECODED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""What `decode_json` raises."""
_ACCEPTED = frozenset({"client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create"})
"""Requests of servers that get an empty answer. All others are refused."""


class LanguageProgram(Protocol):
    """A running server program, connected by non-blocking pipes."""

    input: int
    output: int

    @property
    def how_it_ended(self) -> str | None: ...

    @property
    def never_ran(self) -> bool: ...

    @property
    def stderr_tail(self) -> str: ...

    def end(self) -> None: ...


class ConnectionEndedError(Exception):
    """The connection is over. The text says why."""


class LspRequestError(Exception):
    """The server refused a request."""

    def __init__(self, error: ResponseError) -> None:
        super().__init__(error.message)
        self.code = error.code


class LspConnection:
    """Requests and notifications to one program, sent in the order of the calls."""

    def __init__(self, on_notification: Callable[[str, Raw], None]) -> None:
        self._on_notification = on_notification
        self._replies: dict[int, asyncio.Future[Raw]] = {}
        self._numbers = itertools.count(1)
        self._closing = ExitStack()
        self.ended: str | None = None
        """Why the connection is over. None: it is not."""

    async def open(self, program: LanguageProgram) -> None:
        """Connects the pipes, of which the program keeps its own descriptors. OSError if that fails."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(MAX_HEADER_BYTES)
        output, given = os.fdopen(os.dup(program.output), "rb", 0), os.fdopen(os.dup(program.input), "wb", 0)
        source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), output)
        self._closing.callback(source.close)
        self._input, _ = await loop.connect_write_pipe(asyncio.Protocol, given)
        self._closing.callback(lambda: self._input.is_closing() or self._input.abort())
        self._reading = loop.create_task(self._read(reader))

    async def request(self, method: str, params: Any) -> Raw:
        """The result. LspRequestError, ConnectionEndedError. The server learns if nobody waits any longer."""
        number = next(self._numbers)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": number, "method": method, "params": params})
            return await reply
        except asyncio.CancelledError:
            with suppress(ConnectionEndedError):
                self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            del self._replies[number]

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def end(self, reason: str) -> None:
        """Closes the pipes. Waiting requests fail. The first reason counts."""
        if self.ended is not None:
            return
        self.ended = reason
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(ConnectionEndedError(reason))
        self._closing.close()

    def _send(self, message: dict[str, Any]) -> None:
        if self.ended is None and self._input.is_closing():
            self.end("it closed its input")
        if self.ended is not None:
            raise ConnectionEndedError(self.ended)
        self._input.write(encode_frame(message))
        if self._input.get_write_buffer_size() > _MAX_UNREAD_BYTES:
            self.end("it does not read its input")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            await self._read_messages(reader)
            self.end("it closed its output")
        except ConnectionEndedError as error:
            self.end(str(error))
        except OSError as error:
            self.end(f"its pipe is broken ({error.strerror})")
        finally:  # a defect of ours must not leave callers waiting
            self.end("its connection failed")

    async def _read_messages(self, reader: asyncio.StreamReader) -> None:
        taken = 0
        while (body := await read_frame(reader)) is not None:
            try:
                self._handle(decode_json(body, LspMessage))
            except NOT_DECODED:
                raise ConnectionEndedError("it sent a message that is not JSON-RPC") from None
            taken += len(body) + _MESSAGE_COST
            if taken > _BURST_BYTES:
                await asyncio.sleep(_BURST_PAUSE_SECONDS * (taken // _BURST_BYTES))
                taken = 0

    def _handle(self, message: LspMessage) -> None:
        if message.method is not None and message.id is None:
            self._on_notification(message.method, message.params)
        elif message.method is not None:
            refused = {"error": {"code": METHOD_NOT_FOUND, "message": f"handrail does not have {message.method}"}}
            with suppress(ConnectionEndedError):
                self._send({"id": message.id, **({"result": None} if message.method in _ACCEPTED else refused)})
        elif isinstance(message.id, int) and (reply := self._replies.get(message.id)) and not reply.done():
            if message.error is not None:
                reply.set_exception(LspRequestError(message.error))
            else:
                reply.set_result(message.result)


def encode_frame(message: dict[str, Any]) -> bytes:
    body = msgspec.json.encode({"jsonrpc": "2.0", **message})
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The body of the next message. None at the end. ConnectionEndedError if it is too long, or not the protocol.

    The limit of the reader is the limit of a header.
    """
    try:
        header = await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(_parse_length(header))
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise ConnectionEndedError("its output does not follow the protocol") from None


def _parse_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 20:
            length = int(value)
            if length > _MAX_MESSAGE_BYTES:
                raise ConnectionEndedError(f"it sent a message of more than {_MAX_MESSAGE_BYTES:,} bytes")
            return length
    raise ConnectionEndedError("its output does not follow the protocol")
