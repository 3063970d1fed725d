"""The byte streams of a client over stdio."""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from handrail.protocol.jsonrpc import LineSplitter

MAX_LINE_BYTES = 64 << 20
"""The size of a message. `write` takes 32 Mi characters, and most texts need up to two bytes for each."""
MAX_QUEUED_BYTES = 256 << 20
"""Bytes that wait for a client that does not read. With more, the client counts as gone."""
_IDLE_SECONDS = 2.0
"""How often a silent client is checked."""
_WATCH_SECONDS = 0.0001 if (os.cpu_count() or 1) > 1 else 0
"""How long the next message is watched for without sleep. To fall asleep and wake up takes as long as half a read."""
_CHUNK_BYTES = 1 << 16

OnWritten = Callable[[], None]


def take_streams(null: int) -> tuple[int, int]:
    """Reserves stdin and stdout for the protocol, and returns them as new descriptors that no child inherits.

    Other code that prints writes to stderr from then on, and reads nothing. `null` is /dev/null, open both ways.
    Raises OSError if stdin or stdout is closed.
    """
    source, sink = os.dup(0), os.dup(1)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        os.dup2(null, 1)
    return source, sink


class LineReader:
    """Reads lines until the input ends, the client is gone, or `waker` becomes readable."""

    def __init__(
        self, source: int, waker: int, is_orphaned: Callable[[], bool], max_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self._source, self._waker = source, waker
        self._is_orphaned = is_orphaned
        self._max_bytes = max_bytes
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._poll.register(waker, select.POLLIN)

    def lines(self) -> Iterator[bytes | None]:
        """The last line may lack its newline. None for a line above the bound."""
        splitter = LineSplitter(self._max_bytes)
        while data := self._read():
            yield from splitter.feed(data)
        if rest := splitter.remainder:
            yield rest

    def _read(self) -> bytes:
        until = time.monotonic() + _WATCH_SECONDS
        while True:
            while not (ready := dict(self._poll.poll(0))) and time.monotonic() < until:
                pass
            ready = ready or dict(self._poll.poll(_IDLE_SECONDS * 1000))
            if self._waker in ready or (not ready and self._is_orphaned()):
                return b""
            if ready:
                try:
                    return os.read(self._source, _CHUNK_BYTES)
                except OSError:
                    return b""


def _ignore() -> None:
    pass


class MessageWriter:
    """Writes messages in the order of `send`. Thread-safe.

    No caller waits for the client: if the reading thread did, two ends that both write would wait for each other. A
    thread of its own writes what the client does not take at once.
    """

    def __init__(self, sink: int, on_lost: Callable[[], None]) -> None:
        self._sink = sink
        self._on_lost = on_lost
        self._encoder = msgspec.json.Encoder()
        self._queue: deque[tuple[bytes, OnWritten]] = deque()
        self._queued_bytes = 0
        self._closed = self._drains = False
        self._lock = threading.Lock()  # faster to enter than the condition
        self._changed = threading.Condition(self._lock)
        self._room = select.poll()
        self._room.register(sink, select.POLLOUT)

    def send(self, message: dict[str, Any], on_written: OnWritten = _ignore) -> None:
        """Sends a message, unless the client is gone. Any thread calls `on_written` after all of it was written."""
        line = self._encoder.encode(message) + b"\n"
        with self._lock:
            if self._closed:
                return
            rest = line if self._drains else self._write(line)
            if rest:
                self._enqueue(rest, on_written)
            if rest or self._closed:
                return
        on_written()

    def flush(self, seconds: float) -> bool:
        """Whether all was written within this time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or not self._drains, seconds)

    def close(self) -> None:
        with self._changed:
            self._close()

    def _write(self, line: bytes) -> bytes:
        """Writes as much as the client takes at once, and returns the rest. A ready pipe or socket takes PIPE_BUF."""
        view = memoryview(line)
        try:
            while view and self._room.poll(0):
                view = view[os.write(self._sink, view[: select.PIPE_BUF]) :]
        except OSError:
            self._close()
            return b""
        return bytes(view)

    def _enqueue(self, rest: bytes, on_written: OnWritten) -> None:
        self._queue.append((rest, on_written))
        self._queued_bytes += len(rest)
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self._close()
        elif not self._drains:
            self._drains = True
            try:
                threading.Thread(target=self._drain, name="handrail-mcp-outlet", daemon=True).start()
            except RuntimeError:  # the system has no more threads
                self._close()

    def _drain(self) -> None:
        room = select.poll()
        room.register(self._sink, select.POLLOUT)
        while (item := self._take_queued()) is not None:
            view, on_written = memoryview(item[0]), item[1]
            try:
                while view:
                    room.poll()  # the descriptor may be non-blocking
                    view = view[os.write(self._sink, view) :]
            except OSError:
                self.close()
            else:
                with suppress(Exception):  # the journal was closed: the client may get a result twice
                    on_written()

    def _take_queued(self) -> tuple[bytes, OnWritten] | None:
        with self._changed:
            if self._closed or not self._queue:
                self._drains = False
                self._changed.notify_all()
                return None
            item = self._queue.popleft()
            self._queued_bytes -= len(item[0])
            return item

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._queue.clear()
            self._changed.notify_all()
            with suppress(Exception):
                self._on_lost()
