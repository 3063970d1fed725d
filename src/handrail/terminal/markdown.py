"""Markdown of a model as painted rows, line by line while it streams."""

import re

from handrail.protocol.text import to_one_line
from handrail.terminal.glyphs import SpoofGuard
from handrail.terminal.style import Paint, wrap_painted

_INDENT = "  "
_MAX_LINE_CHARS = 4_000
"""A longer line is cut into several, so that its cost stays bounded."""
_MAX_WIDTH = 100
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"(#{1,6}) +(.*)")
_BULLET = re.compile(r"(\s*)([-*+]|\d{1,3}[.)]) +(.*)")
_INLINE = re.compile(r"`+([^`]+)`+|\*\*([^*]+)\*\*|__([^_]+)__")


class MarkdownStream:
    """Turns pieces of text into rows. The text is escaped before any style is added."""

    def __init__(self, paint: Paint, guard: SpoofGuard | None) -> None:
        self._paint, self._guard = paint, guard
        self._line = ""
        self._fence = ""
        self._blank = True
        """Whether the last row is empty, or there is none yet."""

    def feed(self, piece: str, width: int) -> list[str]:
        """Adds a piece. Returns the rows of the lines that are complete now."""
        *whole, rest = (self._line + piece).split("\n")
        while len(rest) > _MAX_LINE_CHARS:
            whole.append(rest[:_MAX_LINE_CHARS])
            rest = rest[_MAX_LINE_CHARS:]
        self._line = rest
        return [row for line in whole for row in self._finish(line, width)]

    def end(self, width: int) -> list[str]:
        """Ends the message. Returns the rows of its last line."""
        rows = self._finish(self._line, width) if self._line.strip() else []
        self._line, self._fence, self._blank = "", "", True
        return rows

    def render_rest(self, width: int) -> list[str]:
        """The rows of the line that is not complete yet."""
        return self._render(self._line, width) if self._line.strip() else []

    def _finish(self, line: str, width: int) -> list[str]:
        if not line.strip() and not self._fence:
            rows = [] if self._blank else [""]
            self._blank = True
            return rows
        rows = self._render(line, width)
        if found := _FENCE.match(line):
            self._fence = "" if self._fence == found[1] else self._fence or found[1]
        self._blank = False
        return rows

    def _render(self, line: str, width: int) -> list[str]:
        marked = self._guard.mark_piece(line, begins=True) if self._guard is not None else line
        text = to_one_line(marked.removesuffix("\r").expandtabs(4))
        width = max(10, min(width, _MAX_WIDTH) - len(_INDENT))
        hanging = ""
        if self._fence and not _FENCE.match(line):
            text = self._paint(text, "hunk")
        elif _FENCE.match(line):
            text = self._paint(text, "dim")
        elif found := _HEADING.fullmatch(text):
            text = self._paint(found[2], "heading")
        else:
            bullet = _BULLET.fullmatch(text)
            hanging = " " * (len(bullet[1]) + len(bullet[2]) + 1) if bullet else ""
            text = _INLINE.sub(self._paint_inline, text)
        return [f"{_INDENT}{row}" for row in wrap_painted(text, width, hanging)] or [_INDENT]

    def _paint_inline(self, found: re.Match[str]) -> str:
        return self._paint(found[1], "hunk") if found[1] else self._paint(found[2] or found[3], "heading")
