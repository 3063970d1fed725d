"""Plain newlines to think in, and the file's own to write: a change takes its line endings from where it is made."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from handrail.edit.trimming import count_common_end, count_common_start

LineEnding = Literal["lf", "crlf", "mixed", "none"]


class Replacement(NamedTuple):
    """A part of a text, from `start` to before `end`, and what takes its place."""

    start: int
    end: int
    text: str


def detect_line_ending(text: str) -> LineEnding:
    """How the lines end."""
    if "\r" not in text:  # said at once, where counting takes a while
        return "lf" if "\n" in text else "none"
    newlines = text.count("\n")
    if not newlines:
        return "none"
    pairs = text.count("\r\n")
    return "crlf" if pairs == newlines else "mixed" if pairs else "lf"


def normalize_newlines(text: str) -> str:
    """The text with plain newlines."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def restore_newlines(
    raw: str, text: str, ending: LineEnding, replacements: Sequence[Replacement], given: str
) -> Iterator[Replacement]:
    """Replacements in the plain text, in order, as what they are in the `raw` one with the file's own line endings.

    A file without any line takes the endings of the text it is `given`.
    """
    if ending == "crlf":
        yield from _in_pairs(text, replacements)
    elif ending == "mixed":
        yield from _in_mixed(raw, text, replacements)
    elif ending == "none" and detect_line_ending(given) == "crlf":
        yield from (Replacement(start, end, _paired(text)) for start, end, text in replacements)
    else:
        yield from replacements


def predict_line_ending(raw: str, ending: LineEnding, replacements: Sequence[Replacement]) -> LineEnding:
    """How the lines end when parts of a text, in order, are replaced by what `in_file` gave."""
    simple = ending == "crlf" or not ("\r" in raw or any("\r" in text for _, _, text in replacements))
    if not simple:
        return detect_line_ending(apply_replacements(raw, replacements))
    ends = (0, *(end for _, end, _ in replacements))
    starts = (*(start for start, _, _ in replacements), len(raw))
    stays = any(raw.find("\n", end, start) >= 0 for end, start in zip(ends, starts, strict=True))
    if not stays and not any("\n" in text for _, _, text in replacements):
        return "none"
    return "crlf" if ending == "crlf" else "lf"


def apply_replacements(text: str, replacements: Sequence[Replacement], start: int = 0, end: int | None = None) -> str:
    """The text, or a part of it, with parts replaced, in order."""
    parts: list[str] = []
    for replacement in replacements:
        parts += (text[start : replacement.start], replacement.text)
        start = replacement.end
    return "".join((*parts, text[start:end]))


def _paired(text: str) -> str:
    return text.replace("\n", "\r\n")


def _in_pairs(text: str, replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """Every newline is one character longer: they are counted from one replacement to the next."""
    at = longer = 0
    for start, end, new in replacements:
        longer += text.count("\n", at, start)
        within = text.count("\n", start, end)
        yield Replacement(start + longer, end + longer + within, _paired(new))
        at, longer = end, longer + within


def _in_mixed(raw: str, text: str, replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """Lines that stay keep the ending they have, whichever it is; new ones take it from the lines they replace."""
    pairs = [found.start() - number for number, found in enumerate(re.finditer("\r\n", raw))]
    until, ending = -1, "\n"
    for replacement in replacements:
        start, end, new = _changed_part(text, replacement)
        first, last = start + bisect_left(pairs, start), end + bisect_left(pairs, end)
        if until < last and "\n" in new:  # looked for once in a line, which can be the whole file
            until, ending = _ending_at(raw, last)
        yield Replacement(first, last, _ended_alike(new, raw[first:last], ending))


def _changed_part(text: str, replacement: Replacement) -> Replacement:
    start, end, new = replacement
    old = text[start:end]
    head = count_common_start(old, new)
    tail = count_common_end(old[head:], new[head:])
    return Replacement(start + head, end - tail, new[head : len(new) - tail])


def _ended_alike(new: str, old: str, otherwise: str) -> str:
    """New lines end as those that they replace, or as the line that they are put into."""
    endings: list[str] = re.findall("\r?\n", old) or [otherwise]
    *lines, last = new.split("\n")
    most = len(endings) - 1
    return "".join(f"{line}{endings[min(number, most)]}" for number, line in enumerate(lines)) + last


def _ending_at(raw: str, position: int) -> tuple[int, str]:
    """How far the line goes that a position is in, and its ending, or that of the one before where it is the last."""
    at = raw.find("\n", position)
    last = raw.rfind("\n", 0, position) if at < 0 else at
    return len(raw) if at < 0 else at, "\r\n" if last > 0 and raw[last - 1] == "\r" else "\n"
