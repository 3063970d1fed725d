"""Writes text to a terminal."""

import os
from collections.abc import Iterable, Mapping
from typing import TextIO

from handrail.protocol.text import escape_char, measure_width, to_one_line, truncate_to_width
from handrail.terminal.style import can_encode, choose_paint, pad_painted, truncate_painted

_MAX_COLUMNS = 102
_MIN_FRAME_COLUMNS = 44
_ASCII = {
    "…": "...",
    "·": "-",
    "✓": "ok",
    "⊘": "DENY",
    "↓": "down",
    "–": "-",
    "−": "-",
    "→": "->",
    "⏎": "\\n",
    "✗": "ERR",
    "—": "-",
}
_TO_ASCII = str.maketrans(_ASCII)
_FRAME = "┌─┐│└┘"
_OPEN_PAGE, _CLOSE_PAGE = "\x1b[?1049h", "\x1b[?1049l"


class Screen:
    """A terminal to write to. In plain form it has no frames, no colour, and never erases text."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str], *, plain: bool = False) -> None:
        self._stream = stream
        is_dumb = environ.get("TERM", "dumb") in {"", "dumb"}
        self.plain = plain or is_dumb or not can_encode(self._stream, _FRAME)
        self.paint = choose_paint(stream, environ, plain=self.plain)
        self._ascii = not can_encode(self._stream, "…·✓⊘↓")
        self._lines_since_mark = 0
        self._size_at_mark = self.size()
        self._has_page = False

    @property
    def shows_all(self) -> bool:
        """Whether its encoding has every character."""
        return (self._stream.encoding or "ascii").lower().replace("_", "-") in {"utf-8", "utf8"}

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            columns, rows = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            columns, rows = 0, 0
        return max(columns or 80, 20), max(rows or 24, 5)

    @property
    def width(self) -> int:
        """The columns for text."""
        return min(self.size()[0] - (4 if self.framed else 1), _MAX_COLUMNS)

    @property
    def framed(self) -> bool:
        return not self.plain and self.size()[0] >= _MIN_FRAME_COLUMNS

    def framed_lines(self, heading: str, lines: list[str]) -> list[str]:
        """The lines below a heading, in a frame if the screen has frames."""
        if not self.framed:
            return [heading, *lines, ""] if self.plain else [heading, *lines]
        width = self.width
        corner, line, right, side, below, last = _FRAME
        name = truncate_to_width(heading, width - 2)
        top = f"{corner} {name} {line * (width - measure_width(name))}{right}"
        inside = [f"{side} {pad_painted(one, width)} {side}" for one in lines]
        return [top, *inside, f"{below}{line * (width + 2)}{last}"]

    def to_encodable(self, text: str) -> str:
        """The text with escapes for the characters that the encoding lacks."""
        if can_encode(self._stream, text):
            return text
        return "".join(char if can_encode(self._stream, char) else escape_char(char) for char in text)

    def mark(self) -> None:
        """Start the part that `erase` erases."""
        self._lines_since_mark, self._size_at_mark = 0, self.size()

    def write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._lines_since_mark += 1
            self._put(f"{line}\n")
        self._stream.flush()

    def status(self, text: str, cursor: int | None = None) -> None:
        """Write one line that the next output replaces, with the cursor in a column. In plain form the line stays."""
        if self.plain:
            self.write([text])
        else:
            position = "" if cursor is None else f"\x1b[{cursor + 1}G"
            self._put(f"\r\x1b[K{truncate_painted(text, self.size()[0] - 1)}{position}")
            self._stream.flush()

    def clear_status(self) -> None:
        if not self.plain:
            self._put("\r\x1b[K")

    def draw_rows(self, rows: list[str], over: int) -> None:
        """Draw rows over so many earlier ones. The cursor is in the last row, before and after."""
        up = f"\x1b[{over - 1}A" if over > 1 else ""
        shown = "\n".join(f"{row}\x1b[K" for row in rows)
        self._put(f"\r{up}{shown}\x1b[J")
        self._stream.flush()

    def draw_page(self, lines: list[str]) -> None:
        """Fill the alternate screen of the terminal."""
        if not self._has_page:
            self._has_page = True
            self.control(_OPEN_PAGE)
        columns, rows = self.size()
        shown = "\r\n".join(f"{truncate_painted(line, columns - 1)}\x1b[K" for line in lines[:rows])
        self._put(f"\x1b[H{shown}\x1b[J")
        self._stream.flush()

    def close_page(self) -> None:
        """Go back from the alternate screen."""
        if self._has_page:
            self._has_page = False
            self.control(_CLOSE_PAGE)

    def erase(self) -> None:
        """Erase the lines since the mark, if all of them are still on the screen."""
        self.clear_status()
        if self.plain or self._size_at_mark != self.size() or self._lines_since_mark >= self._size_at_mark[1]:
            return
        if self._lines_since_mark:
            self._put(f"\x1b[{self._lines_since_mark}F\x1b[J")
        self._lines_since_mark = 0
        self._stream.flush()

    def control(self, sequence: str) -> None:
        """Send a control sequence. It bypasses the stream, which cannot be entered again from a signal handler."""
        if not self.plain:
            os.write(self._stream.fileno(), sequence.encode("ascii"))

    def _put(self, text: str) -> None:
        shown = text.translate(_TO_ASCII) if self._ascii else text
        encoding = self._stream.encoding or "ascii"
        self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))


class Scroll:
    """Shows lines a page at a time, below the earlier ones."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._below: list[str] = []
        """Lines that are not shown yet."""
        self.seen = False
        """Whether the request was shown to its end."""

    @property
    def has_more(self) -> bool:
        return bool(self._below)

    def begin(self, lines: list[str]) -> None:
        """Show the request, for the first time or again."""
        self.seen = False
        self.more(lines)

    def more(self, lines: list[str]) -> None:
        """Show other lines instead of the hidden rest."""
        self._below = lines
        self.page()

    def page(self) -> None:
        self.go_on(self._screen.size()[1] - 2)

    def go_on(self, count: int) -> None:
        """Show so many more lines."""
        self._screen.clear_status()
        self._screen.write(self._below[:count])
        self._below = self._below[count:]
        self.seen = self.seen or not self._below
        self.report_rest()

    def leave(self) -> None:
        """Skip the hidden rest."""
        self._below = []
        self.go_on(0)

    def report_rest(self) -> None:
        if self._below:
            back = " · q back" if self.seen else ""
            self._screen.status(f"{len(self._below)} more lines · space or ↓ shows them{back} · n deny · l later")


def format_folder(path: str) -> str:
    """A folder with ~ for the home."""
    folder, home = os.path.abspath(path), os.path.expanduser("~")
    return to_one_line(f"~{folder.removeprefix(home)}" if home != "/" and folder.startswith(f"{home}/") else folder)


def format_seconds(seconds: float) -> str:
    """A duration: `0.05 s`, `1.2 s`, `12 s`, `2 min 3 s`."""
    if seconds >= 59.5:
        return f"{round(seconds) // 60} min {round(seconds) % 60} s"
    return f"{seconds:.{2 if seconds < 0.095 else 1 if seconds < 9.95 else 0}f} s"
