"""A terminal window whose screen can be read as text."""

import fcntl
import os
import re
import struct
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte

from people import DEADLINE, Program

_PAGE = re.compile(r"(\x1b\[\?1049[hl])")


class Window:
    """A terminal window with a program: what a person sees of it, what they press."""

    def __init__(self, program: Program, columns: int, rows: int = 50) -> None:
        self.program = program
        self._fed = 0
        self._rows = rows
        self._screens = [pyte.HistoryScreen(columns, rows, history=20_000)]
        self._streams = [pyte.Stream(self._screens[0])]

    @classmethod
    def open(cls, command: list[str], cwd: Path, environment: dict[str, str], columns: int, rows: int) -> "Window":
        """Starts a program in a window of its own."""
        return cls(Program(command, cwd, environment, columns=columns, rows=rows), columns, rows)

    def close(self) -> None:
        self.program.close()

    @property
    def raw(self) -> str:
        """Everything that the program sent."""
        self.program.terminal.sees_whole()
        return self.program.terminal._came

    @property
    def lines(self) -> list[str]:
        """The rows of the screen that are not blank."""
        self._feed()
        return [line for line in self._read_rows(self._screens[-1]) if line]

    @property
    def cells(self) -> list[list[tuple[str, str]]]:
        """The rows of the screen: each character with the letter of its style."""
        self._feed()
        screen = self._screens[-1]
        return [
            [_read_cell(screen.buffer[row][column]) for column in range(screen.columns)] for row in range(screen.lines)
        ]

    @property
    def text(self) -> str:
        """The scrollback with the screen below it."""
        self._feed()
        screen = self._screens[0]
        above = (_read_row(line, screen.columns) for line in screen.history.top)
        return "\n".join([*above, *self._read_rows(screen)])

    def waits_for(self, happened: Callable[[], bool], wanted: str) -> None:
        """Waits until something is on the screen."""
        until = time.monotonic() + DEADLINE
        while not happened():
            while not self.program.terminal.look(0.1) and time.monotonic() < until:
                pass  # the screen is as it was
            assert time.monotonic() < until, (
                f"{wanted!r} did not come:\n" + self.text + "\n---\n" + "\n".join(self.lines)
            )

    def sees(self, text: str) -> None:
        self.waits_for(lambda: text in "\n".join(self.lines), text)

    def sees_in_scrollback(self, text: str) -> None:
        self.waits_for(lambda: text in self.text, text)

    def sees_after(self, before: str, text: str) -> None:
        """Waits until the text stands below the last place of another one."""

        def is_below() -> bool:
            _, above, below = self.text.rpartition(before)
            return bool(above) and text in below

        self.waits_for(is_below, f"{text} after {before}")

    def sees_no(self, text: str) -> None:
        self.waits_for(lambda: text not in "\n".join(self.lines), f"anything but {text}")

    def press(self, keys: bytes | str) -> None:
        os.write(self.program.terminal.control, keys.encode() if isinstance(keys, str) else keys)

    def sends(self, text: str) -> None:
        """Types a text, then Enter, as a person does: one key is read before the next comes."""
        self.press(text)
        last = text.splitlines()[-1][-30:]
        self.sees(last)
        self.press(b"\r")

    def answers(self, key: bytes, shown: str) -> None:
        """Presses a key of a prompt when the prompt listens."""
        self.program.press_until(key, shown)
        self._feed()

    def is_ready(self) -> None:
        self.sees("shift+tab mode")
        self.sees_no("working ·")

    def resizes(self, columns: int) -> None:
        """Makes the window so wide, once its program rests: a terminal that wraps half a frame loses it."""
        while self.program.terminal.look(0.1):
            pass
        self._feed()
        for screen in self._screens:
            _reflow(screen, columns)
        fcntl.ioctl(self.program.terminal.control, termios.TIOCSWINSZ, struct.pack("HHHH", self._rows, columns, 0, 0))

    def _feed(self) -> None:
        raw = self.raw
        new, self._fed = raw[self._fed :], len(raw)
        for piece in _PAGE.split(new):
            if piece == "\x1b[?1049h":
                page = pyte.HistoryScreen(self._screens[0].columns, self._rows)
                self._screens.append(page)
                self._streams.append(pyte.Stream(page))
            elif piece == "\x1b[?1049l":
                del self._screens[1:], self._streams[1:]
            else:
                self._streams[-1].feed(piece)

    def _read_rows(self, screen: pyte.HistoryScreen) -> list[str]:
        return [_read_row(screen.buffer[row], screen.columns) for row in range(screen.lines)]


def _reflow(screen: pyte.HistoryScreen, columns: int) -> None:
    """Wraps the rows anew, as tmux, VTE, kitty or iTerm2 do. The cursor stays at its character."""
    rows: list[dict[int, Any]] = []
    last = at = len(screen.history.top) + screen.cursor.y
    for number, line in enumerate([*screen.history.top, *(screen.buffer[row] for row in range(screen.lines))]):
        cells = {column: cell for column, cell in line.items() if cell.data.strip()}
        width = max(cells, default=0) + 1
        if number == last:
            at, width = len(rows) + screen.cursor.x // columns, max(width, screen.cursor.x + 1)
        for start in range(0, width, columns):
            rows.append({column - start: cell for column, cell in cells.items() if 0 <= column - start < columns})
    while len(rows) > at + 1 and not rows[-1]:
        rows.pop()
    above = max(0, len(rows) - screen.lines)
    column = screen.cursor.x % columns
    screen.reset()
    screen.resize(screen.lines, columns)
    for row, cells in enumerate(rows[above:]):
        screen.buffer[row].update(cells)
    for cells in rows[:above]:
        screen.history.top.append(pyte.screens.StaticDefaultDict(screen.default_char))
        screen.history.top[-1].update(cells)
    screen.cursor.y, screen.cursor.x = at - above, column


def _read_row(line: Any, columns: int) -> str:
    """A row as text. The second cell of a wide character is empty."""
    return "".join(line[column].data for column in range(columns)).rstrip()


def _read_cell(char: Any) -> tuple[str, str]:
    colour = {"green": "g", "red": "r", "brown": "y", "cyan": "c"}.get(char.fg, "")
    return char.data, colour or ("b" if char.bold else "")
