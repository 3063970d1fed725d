"""The terminal of a background command: the command starts on it, writers type into it."""

import contextlib
import fcntl
import os
import re
import signal
import struct
import termios
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from handrail.kernel.process import INTERRUPT, QUIT, STOP_KEY
from handrail.kernel.procfs import ProcessStat, list_descendants, signal_process
from handrail.sandbox.launch import Launch

_ROWS, _COLUMNS = 40, 120
_LOCAL_MODES, _CONTROL_CHARACTERS = 3, 6
_DISABLED = b"\0"
_ENABLED_KEYS = (termios.VINTR, termios.VQUIT, termios.VSUSP, termios.VEOF, termios.VLNEXT, termios.VMIN, termios.VTIME)
"""Keys with an effect: interrupt, quit, stop, end of file, and take the next key literally."""
_RESTORED_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that the keeper or its interpreter ignores. The command gets their default effect."""

MAX_PIECE_BYTES = 3500
"""Bytes that are typed at a time. A terminal keeps 4,095 bytes of a line and drops the rest."""
END_OF_FILE = b"\x04"
KEYS = frozenset({b"\x03", b"\x04", b"\x1a", b"\x1c"})
"""Bytes that count as a key if they are sent alone: interrupt, end of file, stop, quit."""
_SIGNALS = {b"\x03": INTERRUPT, b"\x1c": QUIT, b"\x1a": STOP_KEY}
_SPECIAL = re.compile(rb"[\x03\x04\x16\x1a\x1c]")
_LITERAL = b"\x16" + rb"\g<0>"

_PATIENCE_SECONDS = 5.0
"""Time in which the program has to read something. After that the writer gets an error."""
_RETRY_SECONDS = 0.05
_FETCH_BYTES = 1 << 15


class Terminal:
    """A new pseudo-terminal. Bytes pass through it unchanged, in both directions."""

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

    def has_mode(self, mode: int) -> bool:
        """Whether a local mode is set. Without ICANON a program reads key by key, without ISIG no key is a signal."""
        return bool(termios.tcgetattr(self.master)[_LOCAL_MODES] & mode)

    def foreground_group(self) -> int:
        """The process group that a signal key is for. 0: none."""
        try:
            return os.tcgetpgrp(self.master)
        except OSError:
            return 0

    def read(self, size: int) -> bytes:
        """Printed bytes, if any. The command's status tells its end, not the terminal."""
        try:
            return os.read(self.master, size)
        except OSError:
            return b""

    def write(self, data: bytes) -> int:
        """The number of bytes that the terminal had room for."""
        try:
            return os.write(self.master, data)
        except OSError:
            return 0

    def hang_up(self) -> None:
        """Close the command's end. Reading ends once no process has it open."""
        slave, self._slave = self._slave, -1
        if slave >= 0:
            os.close(slave)

    def close(self) -> None:
        self.hang_up()
        master, self.master = self.master, -1
        if master >= 0:
            with contextlib.suppress(OSError):
                os.close(master)


def _set_modes(slave: int) -> None:
    """No echo and no translation. Lines are collected, so that there is an end of file."""
    modes = termios.tcgetattr(slave)
    characters: list[bytes] = [
        character if number in _ENABLED_KEYS else _DISABLED
        for number, character in enumerate(modes[_CONTROL_CHARACTERS])
    ]
    local = termios.ICANON | termios.ISIG | termios.IEXTEN
    termios.tcsetattr(slave, termios.TCSANOW, [0, 0, modes[2], local, modes[4], modes[5], characters])


class SpawnedProcess(NamedTuple):
    """A started program, for `ProcessTree`."""

    pid: int

    def wait(self) -> int:
        """The exit code, negative for a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def spawn(launch: Launch, terminal: Terminal) -> SpawnedProcess:
    """Start a launch on a terminal, as the leader of a new session."""
    for descriptor in launch.inherited:
        os.set_inheritable(descriptor, True)
    # A session leader that opens a terminal controls it. A supervisor must leave that to its command.
    mode = os.O_RDWR if launch.own_processes else os.O_RDWR | os.O_NOCTTY
    process = os.posix_spawn(
        launch.argv[0],
        launch.argv,
        launch.environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, terminal.path, mode, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_RESTORED_SIGNALS,
    )
    return SpawnedProcess(process)


def list_live_descendants(program: int, namespace: int | None) -> list[ProcessStat]:
    """The command's processes, without the launched program and the first process of its namespace."""
    try:
        descendants = list_descendants(program)
    except OSError:  # no free descriptor
        return []
    return [process for process in descendants if not process.dead and process.number != namespace]


class PendingInput:
    """The bytes of one writer. They are fetched when needed, so that no writer fills the keeper's memory."""

    def __init__(
        self, size: int, *, eof: bool, fetch: Callable[[int], bytes], done: Callable[[int, bool], None]
    ) -> None:
        self.fetch = fetch
        """Gives up to that many bytes of those that arrived."""
        self.done = done
        """Called once with the number of bytes taken, and whether that is all."""
        self.may_be_key = size == 1 and not eof
        self.eof = eof
        self.missing = size
        self.held = b""
        """Bytes that are fetched and not typed."""
        self.taken = 0


class InputQueue:
    """Types what writers send, one writer after the other, as fast as the program reads."""

    def __init__(self, terminal: Terminal, program: int, namespace: int | None) -> None:
        self.typed_at = time.monotonic()
        self.untyped = b""
        """Keys of a piece that counts as taken, for which the terminal had no room."""
        self._terminal = terminal
        self._program = program
        self._namespace = namespace
        self._writers: deque[PendingInput] = deque()
        self._until = 0.0

    def add(self, writer: PendingInput) -> None:
        self._writers.append(writer)
        if len(self._writers) == 1:
            self._restart_clock()

    def remove(self, writer: PendingInput) -> None:
        if writer in self._writers:
            self._writers.remove(writer)
            self._restart_clock()

    def pause(self) -> float:
        """Seconds until the next try. Not every kernel reports that a terminal has room."""
        return _RETRY_SECONDS if self._writers or self.untyped else 3600.0

    def type_pending(self) -> None:
        while self._type_keys() and self._writers:
            writer = self._writers[0]
            if not (writer.missing or writer.held or writer.eof):
                self._finish(writer, complete=True)
            elif not self._take_piece(writer):
                break
        if self._writers and time.monotonic() >= self._until:
            self._finish(self._writers[0], complete=False)

    def _restart_clock(self) -> None:
        self._until = time.monotonic() + _PATIENCE_SECONDS

    def _type_keys(self) -> bool:
        while self.untyped:
            count = self._terminal.write(self.untyped)
            if not count:
                return False
            self.untyped = self.untyped[count:]
            self.typed_at = time.monotonic()
            self._restart_clock()
        return True

    def _take_piece(self, writer: PendingInput) -> bool:
        """Turn the writer's next piece, or its end of file, into keys. False: nothing has arrived."""
        if writer.missing and len(writer.held) < MAX_PIECE_BYTES:
            data = writer.fetch(min(writer.missing, _FETCH_BYTES))
            writer.missing -= len(data)
            writer.held += data
        if not (writer.missing or writer.held):
            self.untyped, writer.eof = END_OF_FILE, False
            return True
        piece = _cut_piece(writer.held, is_last=not writer.missing)
        writer.held = writer.held[len(piece) :]
        writer.taken += len(piece)
        if writer.may_be_key and piece in KEYS:
            self.untyped = b"" if self._signal_command(piece) else piece
        else:
            self.untyped = encode_keys(piece) if self._terminal.has_mode(termios.ICANON) else piece
        return bool(piece)

    def _signal_command(self, key: bytes) -> bool:
        """Send the key's signal to the command. False: the terminal will do it, if the key is typed.

        A terminal signals the whole foreground group. If the command shares that group with bubblewrap, bubblewrap
        would die of it and take along a command that may handle the signal. So the others get it from here.
        """
        number = _SIGNALS.get(key)
        shares_group = self._namespace is not None and self._terminal.foreground_group() == self._program
        if number is None or not shares_group or not self._terminal.has_mode(termios.ISIG):
            return False
        for process in list_live_descendants(self._program, self._namespace):
            if process.group == self._program:
                signal_process(process, number)
        return True

    def _finish(self, writer: PendingInput, *, complete: bool) -> None:
        self.remove(writer)
        writer.done(writer.taken, complete)


def _cut_piece(held: bytes, *, is_last: bool) -> bytes:
    """Whole lines, or as much as a terminal takes at a time."""
    end = held.rfind(b"\n", 0, MAX_PIECE_BYTES) + 1
    if end:
        return held[:end]
    return held[:MAX_PIECE_BYTES] if is_last or len(held) >= MAX_PIECE_BYTES else b""


def encode_keys(data: bytes) -> bytes:
    """The keys that make a terminal in line mode pass on exactly these bytes, at once."""
    pieces = (
        line[start : start + MAX_PIECE_BYTES]
        for line in re.findall(rb"[^\n]*\n|[^\n]+", data)
        for start in range(0, len(line), MAX_PIECE_BYTES)
    )
    return b"".join(map(_encode_piece, pieces))


def _encode_piece(piece: bytes) -> bytes:
    literal = _SPECIAL.sub(_LITERAL, piece)
    # End of file after the beginning of a line passes that beginning on. It ends the input only on an empty line.
    return literal if piece.endswith(b"\n") else literal + END_OF_FILE
