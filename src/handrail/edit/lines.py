"""Line arithmetic on a text."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import AnyStr, Literal, NamedTuple

LineEnding = Literal["lf", "crlf", "mixed", "none"]


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


def count_common_start(one: AnyStr, other: AnyStr) -> int:
    """Count the characters, or bytes, that two texts start with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # bisection: texts can be megabytes
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def count_common_end(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


def detect_line_ending(text: str) -> LineEnding:
    if "\r" not in text:  # much faster than counting
        return "lf" if "\n" in text else "none"
    newlines = text.count("\n")
    if not newlines:
        return "none"
    pairs = text.count("\r\n")
    return "crlf" if pairs == newlines else "mixed" if pairs else "lf"


def normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n") if "\r" in text else text


def restore_newlines(
    raw: str, text: str, ending: LineEnding, replacements: Sequence[Replacement], sent: str
) -> Iterator[Replacement]:
    """Translate ordered replacements in the normalized `text` to the `raw` text with its own line endings.

    If the raw text has no newline, new lines take the line ending of the text that was `sent`.
    """
    if ending == "crlf":
        yield from _restore_crlf(text, replacements)
    elif ending == "mixed":
        yield from _restore_mixed(raw, text, replacements)
    elif ending == "none" and detect_line_ending(sent) == "crlf":
        yield from (Replacement(start, end, _to_crlf(text)) for start, end, text in replacements)
    else:
        yield from replacements


def predict_line_ending(raw: str, ending: LineEnding, replacements: Sequence[Replacement]) -> LineEnding:
    """Return the line ending of `raw` after replacements from `restore_newlines`."""
    simple = ending == "crlf" or not ("\r" in raw or any("\r" in text for _, _, text in replacements))
    if not simple:
        return detect_line_ending(apply_replacements(raw, replacements))
    ends = (0, *(end for _, end, _ in replacements))
    starts = (*(start for start, _, _ in replacements), len(raw))
    keeps_newline = any(raw.find("\n", end, start) >= 0 for end, start in zip(ends, starts, strict=True))
    if not keeps_newline and not any("\n" in text for _, _, text in replacements):
        return "none"
    return "crlf" if ending == "crlf" else "lf"


def _to_crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def _restore_crlf(text: str, replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """Shift each replacement by the newlines before it: each is one character longer in the raw text."""
    at = shift = 0
    for start, end, new in replacements:
        shift += text.count("\n", at, start)
        inner = text.count("\n", start, end)
        yield Replacement(start + shift, end + shift + inner, _to_crlf(new))
        at, shift = end, shift + inner


def _restore_mixed(raw: str, text: str, replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """Keep the endings of unchanged lines. New lines take the endings of the lines that they replace."""
    pairs = [match.start() - number for number, match in enumerate(re.finditer("\r\n", raw))]
    line_end, ending = -1, "\n"
    for replacement in replacements:
        start, end, new = _trim_common(text, replacement)
        first, last = start + bisect_left(pairs, start), end + bisect_left(pairs, end)
        if line_end < last and "\n" in new:  # searched once a line, which can be the whole file
            line_end, ending = _find_ending(raw, last)
        yield Replacement(first, last, _copy_endings(new, raw[first:last], ending))


def _trim_common(text: str, replacement: Replacement) -> Replacement:
    start, end, new = replacement
    old = text[start:end]
    head = count_common_start(old, new)
    tail = count_common_end(old[head:], new[head:])
    return Replacement(start + head, end - tail, new[head : len(new) - tail])


def _copy_endings(new: str, old: str, default: str) -> str:
    """End the new lines like the old lines, or with `default` if there are none."""
    endings: list[str] = re.findall("\r?\n", old) or [default]
    *lines, rest = new.split("\n")
    last = len(endings) - 1
    return "".join(f"{line}{endings[min(number, last)]}" for number, line in enumerate(lines)) + rest


def _find_ending(raw: str, position: int) -> tuple[int, str]:
    """Return where the line of a position ends, and its ending. The last line has that of the line before it."""
    at = raw.find("\n", position)
    last = raw.rfind("\n", 0, position) if at < 0 else at
    return len(raw) if at < 0 else at, "\r\n" if last > 0 and raw[last - 1] == "\r" else "\n"
