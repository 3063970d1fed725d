"""What comes from the client: one message a line, none longer than a bound."""

import os
import select
from collections.abc import Callable, Iterator

MAX_LINE_BYTES = 64 << 20
"""Bytes of a message. `write` takes 32 Mi characters, and JSON needs up to two bytes for those of most texts."""
IDLE_SECONDS = 2.0
"""How often somebody looks whether the client is still there, while it says nothing."""
_CHUNK_BYTES = 1 << 16


class OversizedLine:
    """Stands for a line that was longer than a message may be; nothing of it was kept."""


class LineReader:
    """A descriptor that lines are read from, until it ends or something else is to be looked at."""

    def __init__(self, source: int, waker: int, is_alone: Callable[[], bool], longest: int = MAX_LINE_BYTES) -> None:
        """`waker`: a descriptor that ends the reading once it can be read. `is_alone`: whether the client is gone
        though the input goes on."""
        self._source, self._waker = source, waker
        self._is_alone = is_alone
        self._longest = longest
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._poll.register(waker, select.POLLIN)

    def lines(self) -> Iterator[bytes | OversizedLine]:
        """The lines, as they come; what stands behind the last newline is one too."""
        kept: list[bytes] = []
        size, skips = 0, False
        while data := self._read():
            *ended, rest = data.split(b"\n")
            for part in ended:
                if skips or size + len(part) > self._longest:
                    yield OversizedLine()
                else:
                    yield b"".join((*kept, part)) if kept else part
                kept, size, skips = [], 0, False
            if rest and not skips:
                kept.append(rest)
                size += len(rest)
                if size > self._longest:
                    kept, size, skips = [], 0, True
        if kept:
            yield b"".join(kept)

    def _read(self) -> bytes:
        """The next bytes; none at the end."""
        while True:
            ready = dict(self._poll.poll(IDLE_SECONDS * 1000))
            if self._waker in ready or (not ready and self._is_alone()):
                return b""
            if ready:
                try:
                    return os.read(self._source, _CHUNK_BYTES)
                except OSError:
                    return b""
