"""Messages as lines over two descriptors. What is no message is answered as JSON-RPC says, and ends nothing."""

import asyncio
import os
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

import msgspec

from handrail.acp.messages import MAX_MESSAGE_BYTES, InvalidMessage, parse_message

_READ_BYTES = 1 << 16
_GRACE_SECONDS = 2.0
"""Seconds in which a client may still read once no message comes any more."""
_Writing = tuple[bytes, "asyncio.Future[None]"]


class AcpTransport:
    """What the SDK's connection reads from and writes to. Each descriptor has a thread of its own, so that a client
    that does not read holds up only what is sent to it; neither keeps the process from ending."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._unsent: SimpleQueue[_Writing] = SimpleQueue()
        self._waiting: set[asyncio.Future[None]] = set()
        self._over = False
        self._unanswered = 0
        self._answered = asyncio.Event()
        self._answered.set()
        for work in (self._read, self._write):
            Thread(target=work, name="handrail-acp", daemon=True).start()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when there are no more."""
        message = await self._received.get()
        if message is not None and message.get("method") is not None and "id" in message:
            self._unanswered += 1
            self._answered.clear()
        return message

    async def send(self, message: dict[str, Any]) -> None:
        """Writes a message behind those that were sent before; ConnectionError where nobody reads any more."""
        try:
            await self._put(message)
        finally:
            if "method" not in message:
                self._unanswered -= 1
                if not self._unanswered:
                    self._answered.set()

    def _put(self, message: dict[str, Any]) -> "asyncio.Future[None]":
        sent: asyncio.Future[None] = self._loop.create_future()
        if self._over:
            _fail(sent)
            return sent
        self._waiting.add(sent)
        sent.add_done_callback(self._waiting.discard)
        self._unsent.put((msgspec.json.encode(message, enc_hook=str) + b"\n", sent))
        return sent

    async def wait_until_answered(self) -> None:
        """Waits until every request has its answer, but for one whose client does not read it."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._answered.wait(), _GRACE_SECONDS)

    async def close(self) -> None:
        """Ends reading. What was sent is written by then, since whoever sends waits for it."""
        self.end()

    def end(self) -> None:
        """No message comes any more, whatever the client does; from the loop's own thread. One that does not read
        either is not waited for much longer."""
        self._received.put_nowait(None)
        self._loop.call_later(_GRACE_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._over = True
        for sent in tuple(self._waiting):
            _fail(sent)

    def _read(self) -> None:
        line = bytearray()
        with suppress(OSError):  # nobody is there any more
            while data := os.read(self._source, _READ_BYTES):
                *ends, rest = data.split(b"\n")
                for end in ends:
                    _take(line, end)
                    self._hand_over(parse_message(line))
                    line.clear()
                _take(line, rest)
        self._in_loop(self.end)

    def _hand_over(self, read: dict[str, Any] | InvalidMessage | None) -> None:
        if isinstance(read, InvalidMessage):
            self._in_loop(self._answer, read)
        elif read is not None:
            self._in_loop(self._received.put_nowait, read)

    def _answer(self, refusal: InvalidMessage) -> None:
        error = {"code": refusal.code, "message": refusal.words}
        sent = self._put({"jsonrpc": "2.0", "id": refusal.request, "error": error})
        sent.add_done_callback(lambda future: future.cancelled() or future.exception())  # nobody waits for it

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

    def _in_loop(self, work: Any, *args: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody waits for it
            self._loop.call_soon_threadsafe(work, *args)


def _take(line: bytearray, more: bytes) -> None:
    """Adds to a line; of one that is too long no more is kept than shows that it is."""
    if len(line) <= MAX_MESSAGE_BYTES:
        line += more


def _settle(sent: "asyncio.Future[None]") -> None:
    if not sent.done():
        sent.set_result(None)


def _fail(sent: "asyncio.Future[None]") -> None:
    if not sent.done():
        sent.set_exception(ConnectionError("the client reads no more"))
