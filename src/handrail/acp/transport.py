"""Lines of JSON-RPC to an editor."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

import msgspec

from handrail.protocol.jsonrpc import (
    INVALID_REQUEST,
    LineSplitter,
    MalformedMessage,
    decode_fields,
    is_request_id,
    repair_line,
)

_MAX_MESSAGE_BYTES = 64 << 20
"""An editor may put whole files into a prompt."""
_READ_BYTES = 1 << 16
_GRACE_SECONDS = 2.0
"""Seconds in which an editor can still read after the last message has come."""
_HALF_CHARACTER = b"\\ud"
_Sent = asyncio.Future[None]


class AcpTransport:
    """The transport of the SDK's connection. Each descriptor has a daemon thread of its own, so an editor that does
    not read delays only the messages to it."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._unsent: SimpleQueue[tuple[bytes, _Sent]] = SimpleQueue()
        self._waiting: set[_Sent] = set()
        self._over = False
        self._unanswered = 0
        self._answered = asyncio.Event()
        self._answered.set()
        for work in (self._read, self._write):
            Thread(target=work, name="handrail-acp", daemon=True).start()

    async def receive(self) -> dict[str, Any] | None:
        """The next message. None after the last one."""
        message = await self._received.get()
        if message is not None and message.get("method") is not None and "id" in message:
            self._unanswered += 1
            self._answered.clear()
        return message

    async def send(self, message: dict[str, Any]) -> None:
        """Writes a message behind the earlier ones. ConnectionError if the editor does not read any more."""
        try:
            await self._put(message)
        finally:
            if "method" not in message:
                self._unanswered -= 1
                if not self._unanswered:
                    self._answered.set()

    async def wait_until_answered(self) -> None:
        """Waits until every request has its answer, for a limited time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._answered.wait(), _GRACE_SECONDS)

    async def close(self) -> None:
        """Ends reading. Sent messages are written by then, because `send` waits for that."""
        self.end()

    def end(self) -> None:
        """Ends reading, from the thread of the event loop. Writing ends a little later."""
        self._received.put_nowait(None)
        self._loop.call_later(_GRACE_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._over = True
        for sent in tuple(self._waiting):
            _fail(sent)

    def _put(self, message: dict[str, Any]) -> _Sent:
        sent: _Sent = self._loop.create_future()
        if self._over:
            _fail(sent)
            return sent
        self._waiting.add(sent)
        sent.add_done_callback(self._waiting.discard)
        self._unsent.put((msgspec.json.encode(message, enc_hook=str) + b"\n", sent))
        return sent

    def _read(self) -> None:
        lines = LineSplitter(_MAX_MESSAGE_BYTES)
        with suppress(OSError):  # the editor has gone
            while data := os.read(self._source, _READ_BYTES):
                for line in lines.feed(data):
                    self._take(line)
        self._in_loop(self.end)

    def _take(self, line: bytes | None) -> None:
        try:
            if line is None:
                raise MalformedMessage(INVALID_REQUEST, f"a message has at most {_MAX_MESSAGE_BYTES:,} bytes")
            if line.strip():
                self._in_loop(self._received.put_nowait, parse_fields(line))
        except MalformedMessage as error:
            self._in_loop(self._refuse, error)

    def _refuse(self, error: MalformedMessage) -> None:
        sent = self._put({"jsonrpc": "2.0", "id": error.request_id, "error": error.to_wire()})
        sent.add_done_callback(lambda future: future.cancelled() or future.exception())  # retrieved: nothing waits

    def _write(self) -> None:
        while True:
            data, sent = self._unsent.get()
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(self._sink, left) :]
            except OSError:
                self._in_loop(self.end)
                self._in_loop(_fail, sent)
            else:
                self._in_loop(_settle, sent)

    def _in_loop(self, work: Callable[..., object], *args: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(work, *args)


def parse_fields(line: bytes) -> dict[str, Any]:
    """The fields of a message, as the SDK accepts them. Raises MalformedMessage."""
    try:
        fields = decode_fields(line)
    except MalformedMessage:
        # Without an id there is no answer, and the editor would wait for ever.
        if _HALF_CHARACTER not in line.lower():
            raise
        fields = decode_fields(repair_line(line))
    request_id = fields.get("id")
    if request_id is not None and not is_request_id(request_id):
        raise MalformedMessage(INVALID_REQUEST, "an id must be a string or an integer")
    method = fields.get("method")
    if method is None and ("result" in fields or "error" in fields):
        return fields if isinstance(fields.get("error", {}), dict | None) else {**fields, "error": {}}
    if not isinstance(method, str):
        raise MalformedMessage(INVALID_REQUEST, "a message has a method, or a result, or an error", request_id)
    if not isinstance(fields.get("params", {}), dict | None):
        raise MalformedMessage(INVALID_REQUEST, "params are an object", request_id)
    return fields


def _settle(sent: _Sent) -> None:
    if not sent.done():
        sent.set_result(None)


def _fail(sent: _Sent) -> None:
    if not sent.done():
        sent.set_exception(ConnectionError("the client stopped reading"))
