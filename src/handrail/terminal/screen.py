"""A terminal screen that text is appended to."""

import os
from collections.abc import Iterable, Mapping
from typing import TextIO

from handrail.protocol.text import escape_char, measure_width, pad, truncate_to_width

# § [terminal.screen] Where a question is shown: how large it is, what it can show, and what of it can be taken away
# § again.

_MAX_COLUMNS = 102
_MIN_FRAME_COLUMNS = 44
"""Columns below which a frame would take too much."""
_PLAINER = str.maketrans(
    {
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
)
_FRAME = "┌─┐│└┘"
_OPEN_PAGE, _CLOSE_PAGE = "\x1b[?1049h", "\x1b[?1049l"


class Screen:
    """A terminal to write to. In plain form nothing is ever taken away, and there are no frames."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str], *, plain: bool = False) -> None:
        self._stream = stream
        simple = environ.get("TERM", "dumb") in {"", "dumb"} or bool(environ.get("NO_COLOR"))
        self.plain = plain or simple or not self._can_show(_FRAME)
        self._ascii = not self._can_show("…·✓⊘↓")
        self._since: list[int] = []
        """The rows of what was written since the last mark, as wide as they were then."""
        self._size = self.size()
        self._page = False
        """Whether a page lies over what there is."""

    @property
    def shows_all(self) -> bool:
        """Whether there is no character that it does not have."""
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
        """The columns that text may take."""
        return min(self.size()[0] - (1 if self.plain else 4 if self.framed else 1), _MAX_COLUMNS)

    @property
    def framed(self) -> bool:
        """Whether a question has a frame."""
        return not self.plain and self.size()[0] >= _MIN_FRAME_COLUMNS

    def framed_lines(self, heading: str, lines: list[str]) -> list[str]:
        """The lines in a frame; without one where there is none."""
        if not self.framed:
            return [heading, *lines, ""] if self.plain else [heading, *lines]
        width = self.width
        corner, line, right, side, below, last = _FRAME
        name = truncate_to_width(heading, width - 2)
        top = f"{corner} {name} {line * (width - measure_width(name))}{right}"
        inside = [f"{side} {pad(one, width)} {side}" for one in lines]
        return [top, *inside, f"{below}{line * (width + 2)}{last}"]

    def to_encodable(self, text: str) -> str:
        """A text that is not handrail's own, with what the terminal's encoding does not have written out: nothing else
        may be put in its place."""
        return (
            text
            if self._can_show(text)
            else "".join(char if self._can_show(char) else escape_char(char) for char in text)
        )

    def mark(self) -> None:
        """What is written from here on may be taken away."""
        self._since, self._size = [], self.size()

    def write(self, lines: Iterable[str]) -> None:
        """Writes lines below what there is."""
        for line in lines:
            self._since.append(measure_width(line))
            self._put(f"{line}\n")
        self._stream.flush()

    def status(self, text: str, cursor: int | None = None) -> None:
        """One line that the next thing written replaces, with the cursor in that column; in plain form it stays."""
        if self.plain:
            self.write([text])
        else:
            place = "" if cursor is None else f"\x1b[{cursor + 1}G"
            self._put(f"\r\x1b[K{truncate_to_width(text, self.size()[0] - 1)}{place}")
            self._stream.flush()

    def draw_page(self, lines: list[str]) -> None:
        """Fills the screen with a page that lies over what there is."""
        if not self._page:
            self._page = True
            self.control(_OPEN_PAGE)
        columns, rows = self.size()
        shown = "\r\n".join(f"{truncate_to_width(line, columns - 1)}\x1b[K" for line in lines[:rows])
        self._put(f"\x1b[H{shown}\x1b[J")
        self._stream.flush()

    def close_page(self) -> None:
        """Takes the page away: what it lay over is there again."""
        if self._page:
            self._page = False
            self.control(_CLOSE_PAGE)

    def clear_status(self) -> None:
        """Takes the status line away."""
        if not self.plain:
            self._put("\r\x1b[K")

    def take_away(self) -> None:
        """Takes away what was written since the mark, where all of it is still on the screen."""
        self.clear_status()
        if self.plain or self._size != self.size() or len(self._since) >= self._size[1]:
            return
        if self._since:
            self._put(f"\x1b[{len(self._since)}F\x1b[J")
        self._since = []
        self._stream.flush()

    def control(self, sequence: str) -> None:
        """Something for the terminal itself. Past the stream: a signal may come while that is being written to, and
        then it takes nothing."""
        if not self.plain:
            os.write(self._stream.fileno(), sequence.encode("ascii"))

    def _put(self, text: str) -> None:
        shown = text.translate(_PLAINER) if self._ascii else text
        encoding = self._stream.encoding or "ascii"
        self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))

    def _can_show(self, text: str) -> bool:
        try:
            text.encode(self._stream.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return False
        return True


# § [terminal.scroll] Lines that may be more than the screen has rows: shown a page at a time, below what there is.


class Scroll:
    """What is to be seen of a question, and how much of it was."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._below: list[str] = []
        """What has not been shown yet."""
        self.seen = False
        """Whether the question itself was shown to its end."""

    @property
    def has_more(self) -> bool:
        """Whether there is something that was not shown yet."""
        return bool(self._below)

    def begin(self, lines: list[str]) -> None:
        """The question, for the first time or again."""
        self.seen = False
        self.more(lines)

    def more(self, lines: list[str]) -> None:
        """Something that was asked for, in the place of what is left."""
        self._below = lines
        self.page()

    def page(self) -> None:
        """The next page."""
        self.go_on(self._screen.size()[1] - 2)

    def go_on(self, count: int) -> None:
        """So many more lines."""
        self._screen.clear_status()
        self._screen.write(self._below[:count])
        self._below = self._below[count:]
        self.seen = self.seen or not self._below
        self.say_what_is_left()

    def leave(self) -> None:
        """Nothing more of what was asked for."""
        self._below = []
        self.go_on(0)

    def say_what_is_left(self) -> None:
        """How much there is, and how to see it."""
        if self._below:
            back = " · q back" if self.seen else ""
            self._screen.status(f"{len(self._below)} more lines · space or ↓ shows them{back} · n deny · l later")
