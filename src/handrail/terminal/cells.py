"""How wide a text is on a terminal, and where it is wrapped so that nothing of it is lost."""

import unicodedata
from collections.abc import Iterator

_BACK = 20
"""How far before the edge a blank is looked for to break at."""


def cells(text: str) -> int:
    """The columns that a text takes; a tab must not be in it."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def wrapped(text: str, width: int | None, indent: str = "") -> Iterator[str]:
    """The text in rows of at most so many columns, every character of it; rows after the first are indented."""
    before, room = "", max(1, width or len(text) * 2)
    while text:
        end = _fitting(text, room)
        if end < len(text):
            blank = text.rfind(" ", max(1, end - _BACK), end)
            end = end if blank < 0 else blank + 1
        yield before + text[:end]
        text = text[end:]
        if not before and width is not None and cells(indent) < width // 2:
            before, room = indent, max(1, width - cells(indent))


def cut(text: str, width: int, end: str = "…") -> str:
    """The text, or as much of it as fits."""
    if cells(text) <= width:
        return text
    return text[: _fitting(text, max(1, width - cells(end)))] + end


def padded(text: str, width: int) -> str:
    """The text with blanks up to a width."""
    return text + " " * max(0, width - cells(text))


def _fitting(text: str, width: int) -> int:
    """How many characters fit; at least one, or nothing would ever end."""
    if text.isascii():
        return min(len(text), width)
    used = 0
    for count, char in enumerate(text):
        used += _cells_of(char)
        if used > width:
            return max(1, count)
    return len(text)


def is_mark(char: str) -> bool:
    """Whether it is drawn onto the character before it."""
    return bool(unicodedata.combining(char)) or unicodedata.category(char) in {"Mn", "Me"}


def _cells_of(char: str) -> int:
    if is_mark(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
