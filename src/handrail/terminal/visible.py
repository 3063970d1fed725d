"""Text as it may reach a terminal: whatever steers one, or shows nothing, is written out."""

import re
from collections.abc import Iterator

from handrail.terminal.cells import is_mark

_MOST_MARKS = 4
_PICTURE = re.compile("([\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff]\ufe0f)")
"""A sign in the form of a picture: behind one of these, what chooses the form is seen by what it does."""


def visible(text: str) -> str:
    """The text with everything that steers a terminal or shows nothing written out, in the form JSON has for it."""
    if "\ufe0f" not in text:
        return _shown(text)
    pieces = _PICTURE.split(text)  # every second one is a picture
    return "".join(piece if at % 2 else _shown(piece) for at, piece in enumerate(pieces))


def written_out(text: str) -> tuple[str, ...]:
    """The characters of a text that are written out, each once."""
    pieces = zip(text, _with_few_marks(text), strict=True)
    return tuple(dict.fromkeys(shown for char, piece in pieces if (shown := visible(piece)) != char))


def exact(line: str) -> str:
    """One line of which every character counts: blanks that only look like one, and blanks at its end, too."""
    end = line.rstrip(" ")
    shown = "".join(escaped(char) if char == "\t" or char in _SPACES else char for char in _shown(end))
    return shown + escaped(" ") * (len(line) - len(end))


def exact_line(text: str) -> str:
    """A text of several lines in one, each of its characters seen."""
    return "\\n".join(map(exact, text.split("\n")))


def one_line(text: str) -> str:
    """The text in one line with nothing hidden in it."""
    return visible(text).replace("\n", "\\n").replace("\t", " ")


def escaped(char: str) -> str:
    """A character as JSON writes it without using it."""
    pairs = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))


def _shown(text: str) -> str:
    shown = text.translate(_VISIBLE)
    return shown if shown.isascii() or not any(map(is_mark, set(shown))) else "".join(_with_few_marks(shown))


def _with_few_marks(text: str) -> Iterator[str]:
    """Each character. Marks beyond those that a letter of a language has would cover the lines around: as escapes."""
    marks = 0
    for char in text:
        marks = marks + 1 if is_mark(char) else 0
        yield char if marks <= _MOST_MARKS else escaped(char)


class _Visible(dict[int, str]):
    """Decides about a character when it is first met."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        harmless = (char.isprintable() and char not in _BLANK) or char in "\n\t" or char in _SPACES
        shown = char if harmless else escaped(char)
        self[code] = shown
        return shown


_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Not printable for Python, and yet harmless, but where a blank would mean something else."""
_SELECTORS = "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))) + "\u180b\u180c\u180d\u180f"
"""They choose a form of the character before them; by itself, or behind a letter, none of them is seen."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\U00016fe4\U0001d159" + _SELECTORS)
"""Printable for Python, and yet nothing is seen of them."""
_VISIBLE = _Visible()
