"""What goes to the client: whole messages, one a line, in the order they were sent."""

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

MAX_QUEUED_BYTES = 256 << 20
"""Bytes that may wait for a client that does not read; it has gone, as far as anybody can tell, if there are more."""

Written = Callable[[], None]


def _nothing() -> None:
    pass


class MessageWriter:
    """A descriptor that messages are written to, by any thread, none of which ever waits for the client: the thread
    that reads has to go on reading, or two ends that both write first would wait for each other for ever. What the
    client does not take at once is left to a thread of its own."""

    def __init__(self, sink: int, lost: Callable[[], None]) -> None:
        self._sink = sink
        self._lost = lost
        self._encoder = msgspec.json.Encoder()
        self._waiting: deque[tuple[bytes, Written]] = deque()
        self._bytes = 0
        self._closed = self._drains = False
        self._lock = threading.Lock()  # quicker to enter than the condition over it
        self._changed = threading.Condition(self._lock)
        self._room = select.poll()
        self._room.register(sink, select.POLLOUT)

    def send(self, message: dict[str, Any], written: Written = _nothing) -> None:
        """Sends one message; nothing where the client is gone. `written` is called once all of it was written, by
        whichever thread, and never where it was not."""
        line = self._encoder.encode(message) + b"\n"
        with self._lock:
            if self._closed:
                return
            rest = line if self._drains else self._written(line)
            if rest:
                self._leave(rest, written)
            if rest or self._closed:
                return
        written()

    def flush(self, seconds: float) -> bool:
        """Waits until all of it is written; whether that came about within this time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or not self._drains, seconds)

    def close(self) -> None:
        """Sends nothing from here on."""
        with self._changed:
            self._close()

    def _written(self, line: bytes) -> bytes:
        """Writes as much as is taken at once; the rest. A pipe or a socket that has room takes PIPE_BUF bytes."""
        view = memoryview(line)
        try:
            while view and self._room.poll(0):
                view = view[os.write(self._sink, view[: select.PIPE_BUF]) :]
        except OSError:
            self._close()
            return b""
        return bytes(view)

    def _leave(self, rest: bytes, written: Written) -> None:
        """Leaves it to the thread that waits for the client."""
        self._waiting.append((rest, written))
        self._bytes += len(rest)
        if self._bytes > MAX_QUEUED_BYTES:
            self._close()
        elif not self._drains:
            self._drains = True
            try:
                threading.Thread(target=self._drain, name="handrail-mcp-outlet", daemon=True).start()
            except RuntimeError:  # there can be no more threads, so nobody could wait for the client
                self._close()

    def _drain(self) -> None:
        room = select.poll()
        room.register(self._sink, select.POLLOUT)
        while (waiting := self._next()) is not None:
            view, written = memoryview(waiting[0]), waiting[1]
            try:
                while view:
                    room.poll()  # whoever started us may have made it one that does not wait
                    view = view[os.write(self._sink, view) :]
            except OSError:
                self.close()
            else:
                with suppress(Exception):  # the journal is closed; what is told twice is not lost
                    written()

    def _next(self) -> tuple[bytes, Written] | None:
        with self._changed:
            if self._closed or not self._waiting:
                self._drains = False
                self._changed.notify_all()
                return None
            waiting = self._waiting.popleft()
            self._bytes -= len(waiting[0])
            return waiting

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
            with suppress(Exception):
                self._lost()
