"""Styles of text on a terminal."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TextIO

from handrail.protocol.text import measure_width, truncate_to_width, wrap

Style = Literal["ok", "refused", "failed", "added", "removed", "running", "hunk", "heading", "dim"]
Paint = Callable[[str, Style], str]
"""Adds a style to a text. Untrusted text is escaped before, so no other sequence is in the result."""
_CODES: dict[Style, str] = {
    "ok": "32",
    "refused": "33",
    "failed": "31",
    "added": "32",
    "removed": "31",
    "running": "36",
    "hunk": "36",
    "heading": "1",
    "dim": "2",
}
"""Only basic foreground colours: they are readable on light and dark backgrounds."""
_LIGHT_CODES: dict[Style, str] = {**_CODES, "refused": "35", "running": "34", "hunk": "34"}
"""Yellow and cyan are hard to read on a light background."""
_LIGHT_BACKGROUNDS = frozenset({"7", "15"})
_SEQUENCE = "\x1b\\[[0-9;]*m"
_TRAILING = re.compile(f"(?:{_SEQUENCE}| )+$")
_RESET = "\x1b[0m"


def can_show_colour(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether colour is on: `NO_COLOR` outranks `FORCE_COLOR`, which outranks the kind of the stream."""
    if stream is None or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return environ.get("TERM", "dumb") not in {"", "dumb"} and stream.isatty()


def choose_paint(stream: TextIO | None, environ: Mapping[str, str], *, plain: bool = False) -> Paint:
    """The painter for a stream. `plain`: the person asked for no colour."""
    if plain or not can_show_colour(stream, environ):
        return paint_nothing
    return paint_on_light if _has_light_background(environ) else paint_text


def can_encode(stream: TextIO | None, text: str) -> bool:
    """Whether the encoding of a stream has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _has_light_background(environ: Mapping[str, str]) -> bool:
    """Whether the terminal says that its background is light: `COLORFGBG` ends with the number of a colour."""
    return environ.get("COLORFGBG", "").rpartition(";")[2] in _LIGHT_BACKGROUNDS


def paint_text(text: str, style: Style, codes: Mapping[Style, str] = _CODES) -> str:
    return f"\x1b[{codes[style]}m{text}{_RESET}" if text else text


def paint_on_light(text: str, style: Style) -> str:
    return paint_text(text, style, _LIGHT_CODES)


def paint_nothing(text: str, _: Style) -> str:
    return text


def strip_styles(text: str) -> str:
    return re.sub(_SEQUENCE, "", text) if "\x1b" in text else text


# Layout of painted text


def measure_painted(text: str) -> int:
    """The columns that a painted text takes."""
    return measure_width(strip_styles(text))


def pad_painted(text: str, width: int) -> str:
    return text + " " * max(0, width - measure_painted(text))


def truncate_painted(text: str, width: int) -> str:
    """The beginning that fits into so many columns, with its styles."""
    if measure_painted(text) <= width:
        return text
    return next(_restore_styles(text, [truncate_to_width(strip_styles(text), width)]))


def wrap_painted(text: str, width: int | None, indent: str = "") -> Iterator[str]:
    """The whole text in rows. A style ends with its row, and goes on in the next one behind the indent."""
    rows = wrap(strip_styles(text), width, indent)
    return _restore_styles(text, list(rows), indent) if "\x1b" in text else rows


def wrap_line(line: str, columns: int | None, indent: int) -> str:
    """The line in rows of at most `columns`. Rows after the first are indented, by less if the screen is narrow."""
    indent = indent if columns and indent <= columns // 3 else min(indent, 6)
    rows = wrap_painted(line, columns, " " * indent)
    return "".join(_TRAILING.sub(lambda found: found[0].replace(" ", ""), row) + "\n" for row in rows) or "\n"


def measure_columns(stream: TextIO | None) -> int | None:
    """The columns of the terminal that a stream is. None if it is none."""
    if stream is None or not stream.isatty():
        return None
    return max(20, os.get_terminal_size(stream.fileno()).columns or 80)


def _restore_styles(text: str, rows: list[str], indent: str = "") -> Iterator[str]:
    """Adds the sequences of a painted text to the rows that its characters were split into."""
    pending: list[tuple[int, str]] = []
    removed = 0
    for found in re.finditer(_SEQUENCE, text):
        pending.append((found.start() - removed, found[0]))
        removed += len(found[0])
    active, position = "", 0
    before = len(indent) if sum(map(len, rows)) > len(text) - removed else 0  # no indent on a narrow screen
    for number, row in enumerate(rows):
        start = before if number else 0
        pieces, begin = [row[:start], active], start
        end = position + len(row) - start
        while pending and (pending[0][0] < end or (pending[0][1] == _RESET and pending[0][0] == end)):
            at, sequence = pending.pop(0)
            pieces += [row[begin : start + at - position], sequence]
            begin, active = start + at - position, "" if sequence == _RESET else sequence
        yield "".join([*pieces, row[begin:], _RESET if active else ""])
        position = end
