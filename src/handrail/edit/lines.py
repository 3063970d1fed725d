"""Line arithmetic on a text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """The part of a text from `start` to before `end`."""

    start: int
    end: int


class Replacement(NamedTuple):
    """The part of a text from `start` to before `end`, with its new text."""

    start: int
    end: int
    text: str


def apply_replacements(text: str, replacements: Sequence[Replacement], start: int = 0, end: int | None = None) -> str:
    """Apply ordered replacements to a text, and return it from `start` to `end`."""
    parts: list[str] = []
    for replacement in replacements:
        parts += (text[start : replacement.start], replacement.text)
        start = replacement.end
    return "".join((*parts, text[start:end]))


def list_line_ranges(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the first and last line (from 1) of each span. Ordered spans count each newline once."""
    at = line = 0
    for start, end in spans:
        line += text.count("\n", at, start) if start >= at else -text.count("\n", start, at)
        inner = text.count("\n", start, max(start, end - 1))  # a newline at the end belongs to the line it ends
        yield line + 1, line + 1 + inner
        at = start


def format_line_range(first: int, last: int) -> str:
    """`line 3`, or `lines 3–5`."""
    return f"line {first}" if first == last else f"lines {first}–{last}"


def count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


def find_places(text: str, part: str, *, overlapping: bool = True) -> Iterator[Span]:
    """Yield the places of a part in a text, character for character."""
    step = 1 if overlapping else len(part)
    at = text.find(part)
    while at >= 0:
        yield Span(at, at + len(part))
        at = text.find(part, at + step)


def find_line_start(text: str, position: int, back: int = 0) -> int:
    """Return where the line of a position starts, or the line `back` lines above it."""
    at = text.rfind("\n", 0, position) + 1
    for _ in range(back):
        if at == 0:
            break
        at = text.rfind("\n", 0, at - 1) + 1
    return at


def find_line_end(text: str, position: int, on: int = 0) -> int:
    """Return where the line of a position ends, behind its newline, or the line `on` lines below it."""
    at = position
    for _ in range(on + 1):
        at = text.find("\n", at) + 1 or len(text)
    return at


def count_common_start(one: Sequence[object], other: Sequence[object]) -> int:
    """Count the characters, bytes or lines that two sequences start with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # bisection: texts can be megabytes
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def count_common_end(one: Sequence[object], other: Sequence[object]) -> int:
    return count_common_start(one[::-1], other[::-1])


def normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n") if "\r" in text else text


def split_keeping_newlines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    lines = [f"{line}\n" for line in lines]
    return [*lines, last] if last else lines
