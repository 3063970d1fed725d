"""Keys as a person presses them, told apart from what was pasted or typed before."""

import os
import select
import time
from collections.abc import Callable
from typing import NamedTuple

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_PASTE_SECONDS = 5.0
"""How long the end of a paste is waited for."""
_MAX_BURST_BYTES = 1 << 20
_NAMED = {
    b"\x1b": "esc",
    b"\n": "enter",
    b"\r": "enter",
    b" ": "space",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x15": "clear",
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[D": "left",
    b"\x1bOD": "left",
    b"\x1b[C": "right",
    b"\x1bOC": "right",
    b"\x1b[H": "home",
    b"\x1bOH": "home",
    b"\x1b[1~": "home",
    b"\x01": "home",
    b"\x1b[F": "end",
    b"\x1bOF": "end",
    b"\x1b[4~": "end",
    b"\x05": "end",
    b"\x1b[3~": "delete",
}


class KeyTiming(NamedTuple):
    """How long is waited, in seconds."""

    quiet: float = 1.0
    """Without a key, before a question appears."""
    deaf: float = 0.4
    """In which a question that has just appeared takes no key, nor one after a paste."""
    settle: float = 0.03
    """In which bytes that belong together have come: a key that sends several, or a paste."""
    poll: float = 1.0
    """Between two looks whether the question is still open."""


class KeyPress(NamedTuple):
    """What was pressed: a name, or `text` with what was typed or `paste` with what was pasted; `gone` at the end."""

    name: str
    text: str = ""


class KeyReader:
    """The keys of a terminal that gives every byte at once."""

    def __init__(self, descriptor: int, timing: KeyTiming) -> None:
        self._descriptor = descriptor
        self._timing = timing
        self._gone = False

    def wait_until_quiet(self, on_first: Callable[[], None]) -> None:
        """Drops keys until none has come for a while; says so when the first is dropped."""
        told = False
        while self._bytes_within(self._timing.quiet):
            if not told:
                on_first()
                told = True

    def drop_early(self) -> None:
        """Drops what is pressed before anybody can have read the question."""
        until = time.monotonic() + self._timing.deaf
        while (left := until - time.monotonic()) > 0 and not self._gone:
            self._bytes_within(left)
        self._bytes_within(0)

    def next(self) -> KeyPress | None:
        """The next key; None when there was none for a while."""
        burst = self._bytes_within(self._timing.poll)
        if not burst:
            return KeyPress("gone") if self._gone else None
        while len(burst) < _MAX_BURST_BYTES and (more := self._bytes_within(self._timing.settle)):
            burst += more
        return self._pasted(burst) if _PASTE_BEGINS in burst else self._pressed(burst)

    def rest(self) -> bytes:
        """What comes right after a paste: it belongs to it."""
        rest = b""
        while more := self._bytes_within(self._timing.deaf):
            rest = (rest + more)[:_MAX_BURST_BYTES]
        return rest

    def _pressed(self, burst: bytes) -> KeyPress:
        if burst in _NAMED:
            return KeyPress(_NAMED[burst], " " if burst == b" " else "")
        text = burst.decode(errors="replace")
        if len(text) == 1:
            return KeyPress("text", text) if text.isprintable() else KeyPress("unknown")
        if text.startswith("\x1b") and text[1:].isprintable() and len(text) < 12:
            return KeyPress("unknown")  # some other key that sends several bytes
        self.rest()
        return KeyPress("paste", text)

    def _pasted(self, burst: bytes) -> KeyPress:
        while _PASTE_ENDS not in burst and len(burst) < _MAX_BURST_BYTES:
            more = self._bytes_within(_PASTE_SECONDS)
            if not more:
                break
            burst += more
        self.rest()
        return KeyPress("paste", burst.replace(_PASTE_BEGINS, b"").replace(_PASTE_ENDS, b"").decode(errors="replace"))

    def _bytes_within(self, seconds: float) -> bytes:
        """What there is, waiting so long for it; empty when nothing came, or nothing can come any more."""
        if self._gone or not select.select([self._descriptor], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # the terminal is gone
            data = b""
        self._gone = not data
        return data
