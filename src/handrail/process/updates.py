"""Tells now and then what a running command prints: enough to follow it, never a flood."""

import codecs
import time
from collections.abc import Callable

import msgspec

from handrail.process.cleaning import clean_output
from handrail.process.escapes import count_unfinished_escape

_FIRST_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 1.0
_GROWTH = 0.02
"""The pause as a part of the time that the command has run: it grows from 10 s on, and is 1 s from 50 s on."""
_MAX_UPDATE_CHARS = 4000
_MAX_UPDATE_BYTES = 4 * _MAX_UPDATE_CHARS


class Update(msgspec.Struct, frozen=True):
    """What was printed since the last one."""

    text: str
    """The end of it, cleaned."""
    skipped: int
    """Bytes before it that are left out."""


class Updates:
    """Give it what is printed, and nothing (`b""`) now and then; it tells when it is time to."""

    def __init__(self, tell: Callable[[Update], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._began = clock()
        self._next = self._began + _FIRST_PAUSE_SECONDS
        self._latest = bytearray()
        self._skipped = 0

    def feed(self, data: bytes) -> None:
        """Takes it in; tells, if there is something and the time has come."""
        self._latest += data[-_MAX_UPDATE_BYTES:]
        excess = max(0, len(self._latest) - _MAX_UPDATE_BYTES)
        self._skipped += len(data) - len(data[-_MAX_UPDATE_BYTES:]) + excess
        del self._latest[:excess]
        now = self._clock()
        if now >= self._next and self._latest:
            self._next = now + min(_MAX_PAUSE_SECONDS, max(_FIRST_PAUSE_SECONDS, (now - self._began) * _GROWTH))
            self._emit()

    def _emit(self) -> None:
        data = bytes(self._latest)
        if self._skipped:
            data = self._without_half_a_character(data)
        text, used = codecs.utf_8_decode(data, "replace", False)
        whole = len(text) - count_unfinished_escape(text)
        # Half a character or sequence waits for its other half.
        self._latest = bytearray(text[whole:].encode() + data[used:])
        shown = clean_output(text[max(0, whole - _MAX_UPDATE_CHARS) : whole].encode())
        if shown:
            skipped = self._skipped + len(text[: max(0, whole - _MAX_UPDATE_CHARS)].encode())
            self._skipped = 0
            self._tell(Update(shown, skipped))

    def _without_half_a_character(self, data: bytes) -> bytes:
        start = next((place for place in range(min(3, len(data))) if data[place] & 0xC0 != 0x80), min(3, len(data)))
        self._skipped += start
        return data[start:]
