"""What comes from the client: one message a line, none longer than a bound."""

import os
import select
from collections.abc import Callable, Iterator

from handrail.protocol.jsonrpc import LineSplitter, OversizedLine

MAX_LINE_BYTES = 64 << 20
"""Bytes of a message. `write` takes 32 Mi characters, and JSON needs up to two bytes for those of most texts."""
IDLE_SECONDS = 2.0
"""How often somebody looks whether the client is still there, while it says nothing."""
_CHUNK_BYTES = 1 << 16


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
        splitter = LineSplitter(self._longest)
        while data := self._read():
            yield from splitter.feed(data)
        if rest := splitter.remainder:
            yield rest

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
