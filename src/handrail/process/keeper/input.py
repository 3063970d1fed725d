"""What is written to a kept command: typed in order, one writer after the other, as fast as the program takes it."""

import time
from collections import deque
from collections.abc import Callable

from handrail.process.keeper.events import READ, WRITE, EventPoller
from handrail.process.keeper.keys import END_OF_FILE, KEYS, MAX_PIECE_BYTES, encode_keys
from handrail.process.keeper.pressing import Keyboard
from handrail.process.keeper.terminal import Terminal

PATIENCE_SECONDS = 5.0
"""Seconds in which the program has to take something, before the writer is told that it does not."""
_PAUSE_SECONDS = 0.05
_PIECE_BYTES = 1 << 15


class PendingInput:
    """One writer's bytes. They are fetched as they are needed, so that no writer fills the keeper's memory."""

    def __init__(
        self, size: int, *, eof: bool, fetch: Callable[[int], bytes], done: Callable[[int, bool], None]
    ) -> None:
        self.fetch = fetch
        """Gives up to so many bytes that have come; nothing where none have."""
        self.done = done
        """Called once, with how many bytes were taken, and whether that is all."""
        self.is_short = size == 1 and not eof
        """Whether it may be a key."""
        self.eof = eof
        self.missing = size
        """Bytes that have not been fetched yet."""
        self.held = b""
        """Bytes that have been, and are not typed."""
        self.taken = 0


class InputQueue:
    """Types what writers send."""

    def __init__(self, terminal: Terminal, keyboard: Keyboard, events: EventPoller) -> None:
        self.latest = time.monotonic()
        """When something was last typed."""
        self._terminal = terminal
        self._keyboard = keyboard
        self._events = events
        self._waiting: deque[PendingInput] = deque()
        self._keys = b""
        """Keys of a piece that is counted as taken, and still has to be typed."""
        self._until = 0.0

    def add(self, writing: PendingInput) -> None:
        """Its turn comes when those before it are done."""
        self._waiting.append(writing)
        if len(self._waiting) == 1:
            self._begin()

    def forget(self, writing: PendingInput) -> None:
        """The writer is gone."""
        if writing in self._waiting:
            self._waiting.remove(writing)
            self._begin()

    def pause(self) -> float:
        """Seconds after which to try again, if nothing happens before: not every kernel tells that there is room."""
        return _PAUSE_SECONDS if self._waiting or self._keys else 3600.0

    def type_pending(self) -> None:
        """Types as much as there is room for."""
        while self._typed_all() and self._waiting:
            writing = self._waiting[0]
            if not (writing.missing or writing.held or writing.eof):
                self._finish(writing, complete=True)
            elif not self._next_piece(writing):
                break
        if self._waiting and time.monotonic() >= self._until:
            self._finish(self._waiting[0], complete=False)
        self._events.change(self._terminal.master, READ | WRITE if self._keys else READ)

    def _begin(self) -> None:
        self._until = time.monotonic() + PATIENCE_SECONDS

    def _typed_all(self) -> bool:
        while self._keys:
            count = self._terminal.write(self._keys)
            if not count:
                return False
            self._keys = self._keys[count:]
            self.latest = time.monotonic()
            self._begin()
        return True

    def _next_piece(self, writing: PendingInput) -> bool:
        """Takes the next piece of it, or its end; whether there was something to take."""
        if writing.missing and len(writing.held) < MAX_PIECE_BYTES:
            data = writing.fetch(min(writing.missing, _PIECE_BYTES))
            writing.missing -= len(data)
            writing.held += data
        if not (writing.missing or writing.held):
            self._keys, writing.eof = END_OF_FILE, False
            return True
        piece = _first_piece(writing.held, last=not writing.missing)
        writing.held = writing.held[len(piece) :]
        writing.taken += len(piece)
        self._keys = self._keys_for(writing, piece)
        return bool(piece)

    def _keys_for(self, writing: PendingInput, piece: bytes) -> bytes:
        if writing.is_short and piece in KEYS:
            return self._keyboard.send_key(piece)
        return encode_keys(piece) if self._terminal.takes_lines() else piece

    def _finish(self, writing: PendingInput, *, complete: bool) -> None:
        self._waiting.remove(writing)
        self._begin()
        writing.done(writing.taken, complete)


def _first_piece(held: bytes, *, last: bool) -> bytes:
    """Whole lines, or as much as a terminal takes at a time."""
    end = held.rfind(b"\n", 0, MAX_PIECE_BYTES) + 1
    if end:
        return held[:end]
    return held[:MAX_PIECE_BYTES] if last or len(held) >= MAX_PIECE_BYTES else b""
