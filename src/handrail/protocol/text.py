"""Text for display: escaped, truncated, measured."""

import re
import reprlib
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

_MAX_MARKS_PER_LETTER = 4
_WRAP_LOOKBACK_CHARACTERS = 32
_EMOJI = "([\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff]\ufe0f)"
"""A sign and the selector that makes it an emoji. The selector has a visible effect only after such a sign."""
_ODD_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Not printable for Python. They are escaped only if every character counts."""
_SELECTORS = "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))) + "\u180b\u180c\u180d\u180f"
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\U00016fe4\U0001d159" + _SELECTORS)
"""Printable for Python, but a terminal shows nothing."""


def truncate(text: str, most: int) -> str:
    """The text, or its first `most - 1` characters and an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def format_count(number: int, noun: str) -> str:
    """1 file, 2,000 files, 3 matches."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def clip_text(text: str, most: int) -> str:
    """The beginning of a text. If it has an unprintable character, everything beyond ASCII is escaped."""
    text = text[: most + 1]  # no need to escape a megabyte for a short beginning
    clean = text if text.isprintable() else text.encode("unicode_escape", "surrogatepass").decode("ascii")
    return clean if len(clean) <= most else f"{clean[: most - 3]}…"


def truncate_middle(text: str, budget: int, note: str) -> str:
    """A quarter of the budget is for the beginning, the rest for the end. `{}` in the note is what is left out."""
    room = budget - len(note.format(len(text)))
    head, tail = room // 4, len(text) - (room - room // 4)
    # Cut at the end of a line if one is near.
    head = text.rfind("\n", head // 2, head) + 1 or head
    tail = text.find("\n", tail, tail + room // 4) + 1 or tail
    return f"{text[:head]}{note.format(tail - head)}{text[tail:]}"


def render_value(value: object) -> str:
    """A value for a message: short, printable, JSON-like."""
    return clip_text(_SHORT_REPR.repr(value), 80)


def escape_unprintable(text: str) -> str:
    """The text on one line: unprintable characters become Python escapes, such as `\\x1b`."""
    return text if text.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def escape_control(text: str) -> str:
    """The text with JSON escapes for every character that controls a terminal or is invisible."""
    if "\ufe0f" not in text:
        return _escape_piece(text)
    pieces = re.split(_EMOJI, text)  # every second piece is an emoji
    return "".join(piece if at % 2 else _escape_piece(piece) for at, piece in enumerate(pieces))


def list_escaped_chars(text: str) -> tuple[str, ...]:
    """The escapes that `escape_control` puts into the text, each once."""
    pieces = zip(text, _escape_surplus_marks(text), strict=True)
    return tuple(dict.fromkeys(shown for char, piece in pieces if (shown := escape_control(piece)) != char))


def escape_exact_line(text: str) -> str:
    """The text on one line, in which every character counts: also escapes tabs, unusual spaces, spaces at line ends."""
    return "\\n".join(map(_escape_exact, text.split("\n")))


def _escape_exact(line: str) -> str:
    end = line.rstrip(" ")
    shown = "".join(escape_char(char) if char == "\t" or char in _ODD_SPACES else char for char in _escape_piece(end))
    return shown + escape_char(" ") * (len(line) - len(end))


def to_one_line(text: str) -> str:
    """The text on one line, escaped by `escape_control`. A tab becomes a space."""
    return escape_control(text).replace("\n", "\\n").replace("\t", " ")


def escape_char(char: str) -> str:
    """The JSON escape of a character, such as `\\u001b`."""
    pairs = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))


def measure_width(text: str) -> int:
    """The number of columns that a text without tabs takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_measure_char, text))


def find_similar(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """The name that was probably meant. Empty if none is close."""
    from difflib import get_close_matches  # noqa: PLC0415  only a mistake needs it

    return next(iter(get_close_matches(name[:128], list(names), 1, cutoff)), "")


def wrap(text: str, width: int | None, indent: str = "") -> Iterator[str]:
    """The whole text in rows of at most `width` columns. Rows after the first are indented."""
    before, room = "", max(1, width or len(text) * 2)
    while text:
        end = _count_fitting(text, room)
        if end < len(text):
            blank = text.rfind(" ", max(1, end - _WRAP_LOOKBACK_CHARACTERS), end)
            end = end if blank < 0 else blank + 1
        yield before + text[:end]
        text = text[end:]
        if not before and width is not None and measure_width(indent) < width // 2:
            before, room = indent, max(1, width - measure_width(indent))


def truncate_to_width(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis, in at most `width` columns."""
    return text if measure_width(text) <= width else f"{text[: _count_fitting(text, max(1, width - 1))]}…"


def _escape_piece(text: str) -> str:
    shown = text.translate(_ESCAPES)
    return shown if shown.isascii() or not any(map(_is_mark, set(shown))) else "".join(_escape_surplus_marks(shown))


def _escape_surplus_marks(text: str) -> Iterator[str]:
    """Each character. Marks that no language piles onto one letter would cover other lines, so they are escaped."""
    marks = 0
    for char in text:
        marks = marks + 1 if _is_mark(char) else 0
        yield char if marks <= _MAX_MARKS_PER_LETTER else escape_char(char)


def _count_fitting(text: str, width: int) -> int:
    """The number of characters that fit into a width. At least one, so that `wrap` ends."""
    if text.isascii():
        return min(len(text), width)
    used = 0
    for count, char in enumerate(text):
        used += _measure_char(char)
        if used > width:
            return max(1, count)
    return len(text)


def _measure_char(char: str) -> int:
    if _is_mark(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _is_mark(char: str) -> bool:
    """Whether a terminal draws it onto the character before it."""
    return bool(unicodedata.combining(char)) or unicodedata.category(char) in {"Mn", "Me"}


class _EscapeTable(dict[int, str]):
    """A table for `str.translate` that fills itself."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        harmless = (char.isprintable() and char not in _INVISIBLE) or char in "\n\t" or char in _ODD_SPACES
        self[code] = shown = char if harmless else escape_char(char)
        return shown


_ESCAPES = _EscapeTable()


class _ShortRepr(reprlib.Repr):
    """Bounded in every direction, and the same on every run: no addresses."""

    def repr1(self, x: Any, level: int) -> str:
        if type(x) in {str, int, list, tuple, dict}:
            return super().repr1(x, level)
        if x is None or isinstance(x, bool):
            return {None: "null", True: "true", False: "false"}[x]
        return repr(x) if type(x) is float else f"<{type(x).__name__}>"

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write integers of more than some thousand digits.
        return super().repr_int(x, level) if x.bit_length() < 2_000 else "<too large>"


_SHORT_REPR = _ShortRepr()
_SHORT_REPR.maxstring = _SHORT_REPR.maxlong = 80
