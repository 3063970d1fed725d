"""The terminal of a background process."""

import contextlib
import fcntl
import os
import re
import select
import struct
import termios
import time
from collections import deque
from collections.abc import Callable

from handrail.kernel.process import INTERRUPT, QUIT, STOP_KEY
from handrail.kernel.procfs import ProcessStat, list_descendants, signal_process

# § [process.keeper.terminal] The terminal of a kept command: bytes come out of it as they were printed, and go into
# § it as they are sent.

_ROWS, _COLUMNS = 40, 120
_LOCAL = 3
_CHARACTERS = 6
_OFF = b"\0"
_KEPT = (termios.VINTR, termios.VQUIT, termios.VSUSP, termios.VEOF, termios.VLNEXT, termios.VMIN, termios.VTIME)
"""The keys that still do something: interrupt, quit, stop, end of file, and take the next one literally."""


class Terminal:
    """A new pseudo-terminal; OSError where there is none. Who has this closes it."""

    def __init__(self) -> None:
        self.master, self._slave = os.openpty()
        try:
            self.path = os.ttyname(self._slave)
            os.set_blocking(self.master, False)
            _set_modes(self._slave)
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", _ROWS, _COLUMNS, 0, 0))
        except BaseException:
            self.close()
            raise

    def takes_lines(self) -> bool:
        """Whether it collects lines and has keys that do something: programs switch that off to read key by key."""
        return bool(termios.tcgetattr(self.master)[_LOCAL] & termios.ICANON)

    def signals(self) -> bool:
        """Whether the keys that send a signal do so at present."""
        return bool(termios.tcgetattr(self.master)[_LOCAL] & termios.ISIG)

    def foreground(self) -> int:
        """The group of processes that such a signal goes to; 0 where there is none."""
        try:
            return os.tcgetpgrp(self.master)
        except OSError:
            return 0

    def read(self, size: int) -> bytes:
        """What was printed, if anything; an end is told by the command's status, not here."""
        try:
            return os.read(self.master, size)
        except OSError:
            return b""

    def write(self, data: bytes | memoryview) -> int:
        """How many bytes it had room for."""
        try:
            return os.write(self.master, data)
        except OSError:
            return 0

    def hang_up(self) -> None:
        """Closes the end that belongs to the command: once nobody else has it, reading comes to an end."""
        slave, self._slave = self._slave, -1
        if slave >= 0:
            os.close(slave)

    def close(self) -> None:
        """Lets go of both ends; can be repeated."""
        self.hang_up()
        master, self.master = self.master, -1
        if master >= 0:
            with contextlib.suppress(OSError):
                os.close(master)


def _set_modes(slave: int) -> None:
    """No echo, nothing translated on the way in or out; lines are collected, so that there is an end of file."""
    modes = termios.tcgetattr(slave)
    characters: list[bytes] = [
        modes[_CHARACTERS][number] if number in _KEPT else _OFF for number in range(len(modes[_CHARACTERS]))
    ]
    local = termios.ICANON | termios.ISIG | termios.IEXTEN
    termios.tcsetattr(slave, termios.TCSANOW, [0, 0, modes[2], local, modes[4], modes[5], characters])


# § [process.keeper.events] Waits for many descriptors at once, and calls whoever each of them is for.

READ, WRITE, ENDED = select.POLLIN, select.POLLOUT, select.POLLHUP

Handler = Callable[[int], None]
"""Gets what is ready: READ, WRITE; where the other side has ended, these and ENDED."""


class EventPoller:
    """What a keeper waits for."""

    def __init__(self) -> None:
        self._poller = select.poll()
        self._handlers: dict[int, Handler] = {}

    def on(self, descriptor: int, mask: int, handler: Handler) -> None:
        """From now on the handler is called when the descriptor is ready."""
        self._handlers[descriptor] = handler
        self._poller.register(descriptor, mask)

    def change(self, descriptor: int, mask: int) -> None:
        """Waits for something else of it; for nothing but its end with 0."""
        if descriptor in self._handlers:
            self._poller.modify(descriptor, mask)

    def off(self, descriptor: int) -> None:
        """Forgets it; can be repeated."""
        if self._handlers.pop(descriptor, None) is not None:
            self._poller.unregister(descriptor)

    def wait(self, seconds: float) -> None:
        """Waits for the first that is ready, and calls the handlers of all that are."""
        for descriptor, ready in self._poller.poll(max(0.0, seconds) * 1000):
            handler = self._handlers.get(descriptor)
            if handler is not None:
                ended = ready & (select.POLLHUP | select.POLLERR | select.POLLNVAL)
                handler(READ | WRITE | ENDED if ended else ready)


# § [process.keeper.keys] What to type so that a terminal that collects lines passes on exactly the bytes that were
# § meant.

MAX_PIECE_BYTES = 3500
"""Bytes of one piece: a terminal keeps 4,095 of a line, and forgets the rest."""

END_OF_FILE = b"\x04"
KEYS = frozenset({b"\x03", b"\x04", b"\x1a", b"\x1c"})
"""What is a key when it is sent alone: interrupt, end of file, stop, quit."""

_TAKEN_FOR_ITSELF = re.compile(rb"[\x03\x04\x16\x1a\x1c]")
_LITERALLY = b"\x16" + rb"\g<0>"


def encode_keys(data: bytes) -> bytes:
    """The keys for some bytes, which a program gets at once, with or without the end of a line."""
    return b"".join(map(_piece, _pieces(data)))


def _pieces(data: bytes) -> list[bytes]:
    """Each ends with a line, or is short enough to be pushed on before it does."""
    pieces: list[bytes] = []
    for line in _lines(data):
        pieces += [line[start : start + MAX_PIECE_BYTES] for start in range(0, len(line), MAX_PIECE_BYTES)]
    return pieces


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _piece(piece: bytes) -> bytes:
    literal = _TAKEN_FOR_ITSELF.sub(_LITERALLY, piece)
    # The key for the end of a file passes on what there is of a line; only where there is nothing does it end one.
    return literal if piece.endswith(b"\n") else literal + END_OF_FILE


# § [process.keeper.signalling] The processes that a kept command has started.


def list_live_descendants(program: int, namespace: int | None) -> list[ProcessStat]:
    """All that the command has started and that lives: not the launched program, nor what is first in its
    namespace, where it has one."""
    try:
        found = list_descendants(program)
    except OSError:  # there is no descriptor left to look with
        return []
    return [process for process in found if not process.dead and process.number != namespace]


# § [process.keeper.pressing] Keys that send a signal, for a command that shares its terminal with the program that
# § confines it. A terminal sends the signal to all of a group of processes. Bubblewrap is in the command's, would
# § die of it, and take the command with it that may have meant to handle it. So the signal is sent here to all of
# § the group but bubblewrap, unless the command has made a group of its own, as shells do that people type into.

_SIGNALS = {b"\x03": INTERRUPT, b"\x1c": QUIT, b"\x1a": STOP_KEY}


class Keyboard:
    """The keys of one command's terminal."""

    def __init__(self, terminal: Terminal, program: int, namespace: int | None) -> None:
        self._terminal = terminal
        self._program = program
        self._namespace = namespace

    def send_key(self, key: bytes) -> bytes:
        """Presses it; the key itself where it has to be typed."""
        number = _SIGNALS.get(key)
        shared = self._namespace is not None and self._terminal.foreground() == self._program
        if number is None or not shared or not self._terminal.signals():
            return key
        for process in list_live_descendants(self._program, self._namespace):
            if process.group == self._program:
                signal_process(process, number)
        return b""


# § [process.keeper.input] What is written to a kept command: typed in order, one writer after the other, as fast as
# § the program takes it.

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
