"""The terminal of a kept command: bytes come out of it as they were printed, and go into it as they are sent."""

import contextlib
import fcntl
import os
import struct
import termios

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
