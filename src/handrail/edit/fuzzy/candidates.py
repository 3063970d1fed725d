"""Candidate places of an edit, with the differences they forgive."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import msgspec

from handrail.edit.fuzzy.normalize import PLAIN_CHARACTERS, EditReading, split_plain_words, split_words, squash_spaces
from handrail.edit.lines import Span, find_line_end, find_line_start

# § [edit.ladder.errors] Why a place that is known is not changed.


class UnsafeError(Exception):
    """The place is known, but not what the edit would make of it."""


class RefusedError(Exception):
    """There is a place, but the edit cannot be made there without a guess."""

    def __init__(self, span: Span, reason: str) -> None:
        super().__init__(reason)
        self.span = span


# § [edit.ladder.fitting] How a place fits the lines that are looked for: which line means which, and what has to be
# § forgiven.

Pair = tuple[int | None, int | None]
"""A line of the old text and the line of the place that it means; None where there is only one."""


class Tolerance(IntEnum):
    """What had to be forgiven, the safest first."""

    NOTHING = 0
    LINE_ENDS = 1
    BOTH_SIDES = 2
    BOUNDARY = 3
    WHITE_SPACE = 4
    TYPOGRAPHY = 5
    TOKENS = 6


class Candidate(msgspec.Struct, frozen=True):
    """A place, and which of its lines each line of the old text means."""

    reading: EditReading
    span: Span
    lines: list[str]
    """The lines of the place; the first and the last may be parts of lines."""
    pairs: list[Pair]
    tolerance: Tolerance
    inside_line: bool = False
    """Whether it may begin and end within a line."""


def pair_blank_lines(old: Sequence[str], lines: Sequence[str], full: Sequence[Pair]) -> tuple[list[Pair], Tolerance]:
    """The pairs of lines that are not blank, and the blank ones around them as far as both have them."""
    first, last = full[0], full[-1]
    lead, trail = first[0] or 0, len(old) - 1 - (last[0] or 0)
    above, below = _blank(lines, (first[1] or 0) - 1, -1, lead), _blank(lines, (last[1] or 0) + 1, 1, trail)
    tolerance = Tolerance.NOTHING if (above, below) == (lead, trail) else Tolerance.BOUNDARY
    pairs: list[Pair] = [(i, None) for i in range(lead - above)]
    i, j = lead - above, (first[1] or 0) - above
    for one, other in full:
        between = (i if one is None else one) - i, (j if other is None else other) - j
        pairs += _beside(i, j, *between)
        pairs.append((one, other))
        tolerance = tolerance if between[0] == between[1] else Tolerance.WHITE_SPACE
        i, j = i if one is None else one + 1, j if other is None else other + 1
    pairs += [(i + n, j + n) for n in range(below)]
    pairs += [(n, None) for n in range(i + below, len(old))]
    return pairs, tolerance


def find_tolerance(wanted: str, line: str) -> Tolerance:
    """What a line needs forgiven."""
    if wanted == line:
        return Tolerance.NOTHING
    if wanted.rstrip() == line.rstrip():
        return Tolerance.LINE_ENDS
    if wanted.strip() == line.strip():
        return Tolerance.BOTH_SIDES
    if split_words(wanted) == split_words(line):
        return Tolerance.WHITE_SPACE
    return Tolerance.TYPOGRAPHY if split_plain_words(wanted) == split_plain_words(line) else Tolerance.TOKENS


def _beside(i: int, j: int, blank: int, there: int) -> list[Pair]:
    """Blank lines of both texts in pairs, and what is left of either alone."""
    both = min(blank, there)
    pairs: list[Pair] = [(i + n, j + n) for n in range(both)]
    pairs += [(i + n, None) for n in range(both, blank)]
    pairs += [(None, j + n) for n in range(both, there)]
    return pairs


def _blank(lines: Sequence[str], at: int, step: int, most: int) -> int:
    """How many blank lines there are from a line on, upwards or downwards."""
    count = 0
    while count < most and 0 <= at < len(lines) and not squash_spaces(lines[at]):
        count, at = count + 1, at + step
    return count


# § [edit.ladder.page] A text that is searched for places that say the same, whatever their white space is and
# § however they look.  One search serves every strategy that forgives white space and typography: on lines without
# § either. What a place then needs forgiven, line by line, tells how safe it is.

_MIN_PART_CHARS, _MAX_PART_CHARS = 4, 1_000
"""Characters, without white space, that parts of lines must and may have to be looked for with other white space."""
_GOES_ON = re.compile(r"[.-]\w")
_MAX_SEARCH_STEPS = 50_000_000
_MAX_SPAN_CHARS = 20_000
"""Characters that the lines may have in which they are."""


class Edges(NamedTuple):
    """How a part of a line must begin and end, by the white space that the old text has around it."""

    before: str
    behind: str

    def allow(self, text: str, start: int, end: int) -> bool:
        """Whether a place can be meant: indentation begins a line, a newline ends one, no name or number goes on."""
        if self.before and text[find_line_start(text, start) : start].strip():
            return False
        rest = text[end : find_line_end(text, end)]
        if "\n" in self.behind and rest.strip():
            return False
        if self.behind and rest[:1].strip():
            return False
        return _GOES_ON.match(rest) is None or not _is_word(text[end - 1])


class IndexedText:
    """The lines of a text, and what they say."""

    def __init__(self, text: str, said: Callable[[str], str] = squash_spaces) -> None:
        self.text = text
        self._said = said
        self.lines = text.split("\n")
        if not self.lines[-1]:
            self.lines.pop()
        self.starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))
        keys = said(text).split("\n")
        self.numbers = [number for number, key in enumerate(keys) if key]
        """The lines that are not blank."""
        self.keys = [keys[number] for number in self.numbers]
        """What these say."""

    @cached_property
    def _joined(self) -> str:
        return "\n".join(("", *self.keys, ""))

    @cached_property
    def said_lines(self) -> frozenset[str]:
        """What the lines say, without white space."""
        return frozenset(self.keys)

    def has_word(self, word: str) -> bool:
        """Whether a word or sign is somewhere in the text, not as a part of another."""
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text) is not None

    def fits(self, reading: EditReading, most: Tolerance = Tolerance.TYPOGRAPHY) -> Iterator[Candidate]:
        """All places of whole lines that need no more forgiven, in order; they may overlap."""
        full, keys = list_full_lines(reading.old, self._said)
        if not full:
            return
        wanted = "\n".join(("", *keys, ""))
        at, first, passed = self._joined.find(wanted), 0, 0
        while at >= 0:
            first += self._joined.count("\n", passed, at)
            passed = at
            found = self.numbers[first : first + len(full)]
            pairs, tolerance = pair_blank_lines(reading.old, self.lines, list(zip(full, found, strict=True)))
            fit = self.fit(reading, pairs, tolerance)
            if fit.tolerance <= most:
                yield fit
            at = self._joined.find(wanted, at + 1)

    def fit(self, reading: EditReading, pairs: Sequence[Pair], tolerance: Tolerance) -> Candidate:
        """The fit of whole lines that belong together."""
        there = [j for _, j in pairs if j is not None]
        first, last = there[0], there[-1]
        end = self.starts[last] + len(self.lines[last])
        span = Span(self.starts[first], min(end + reading.terminated, len(self.text)))
        own = [(i, None if j is None else j - first) for i, j in pairs]
        lines = self.lines[first : last + 1]
        return Candidate(reading, span, lines, own, max(tolerance, _needed(reading.old, lines, own)))

    def line_of(self, position: int) -> int:
        """The line that a position is in."""
        return bisect_right(self.starts, position) - 1

    def fits_inside(self, reading: EditReading, edges: Edges) -> Iterator[Candidate]:
        """All places that begin or end within a line, where they may; very long lines are not searched."""
        full, keys = list_full_lines(reading.old)
        wanted = "\n".join(keys)
        if not _MIN_PART_CHARS <= len(wanted) <= _MAX_PART_CHARS:
            return
        spans = list(self._around(wanted, len(full)))
        if sum(end - start for start, end in spans) * len(wanted) > _MAX_SEARCH_STEPS:
            return
        pattern = _pattern(reading.old)
        for start, end in spans:
            found = pattern.search(self.text, start, end)
            while found is not None:
                if edges.allow(self.text, *found.span()):
                    yield self._fit_inside(reading, full, found)
                found = pattern.search(self.text, found.start() + 1, end)

    def _fit_inside(self, reading: EditReading, full: list[int], found: re.Match[str]) -> Candidate:
        lines = found[0].split("\n")
        pairs, tolerance = pair_blank_lines(reading.old, lines, list(zip(full, list_full_lines(lines)[0], strict=True)))
        tolerance = max(tolerance, Tolerance.BOUNDARY, _needed(reading.old, lines, pairs))
        return Candidate(reading, Span(*found.span()), lines, pairs, tolerance, inside_line=True)

    def _around(self, wanted: str, count: int) -> Iterator[Span]:
        """The lines that have what is looked for in them."""
        at, number, passed = self._joined.find(wanted), -1, 0
        while at >= 0:
            number += self._joined.count("\n", passed, at)
            passed = at
            first, last = self.numbers[number], self.numbers[number + count - 1]
            span = Span(self.starts[first], self.starts[last] + len(self.lines[last]))
            if span.end - span.start <= _MAX_SPAN_CHARS:
                yield span
            at = self._joined.find(wanted, self._joined.find("\n", at))  # the other places in this line are found


def list_full_lines(lines: Sequence[str], said: Callable[[str], str] = squash_spaces) -> tuple[list[int], list[str]]:
    """The lines that are not blank, and what they say."""
    keys = [said(line) for line in lines]
    full = [number for number, key in enumerate(keys) if key]
    return full, [keys[number] for number in full]


def _needed(old: Sequence[str], lines: Sequence[str], pairs: Sequence[Pair]) -> Tolerance:
    """What the lines need forgiven."""
    needed = Tolerance.NOTHING
    for i, j in pairs:
        if i is not None and j is not None:
            needed = max(needed, find_tolerance(old[i], lines[j]))
    return needed


def _pattern(lines: Sequence[str]) -> re.Pattern[str]:
    """The words and signs of some lines, with any white space between them."""
    full = [found for found in map(split_plain_words, lines) if found]
    body = r"[^\S\n]*\n\s*".join("".join(_spaced(found)) for found in full)
    return re.compile(rf"{_edge(full[0][0][0])}{body}{_edge(full[-1][-1][-1])}")


def _spaced(found: list[str]) -> Iterator[str]:
    last = ""
    for word in found:
        if last:
            yield r"[^\S\n]+" if _is_word(last) and _is_word(word) else r"[^\S\n]*"
        yield "".join(_LOOKS.get(character, re.escape(character)) for character in word)
        last = word


def _edge(character: str) -> str:
    return r"\b" if _is_word(character) else ""


def _is_word(text: str) -> bool:
    return re.match(r"\w", text) is not None


_LOOKS = {
    plain: f"[{''.join(map(re.escape, (plain, *(odd for odd in PLAIN_CHARACTERS if PLAIN_CHARACTERS[odd] == plain))))}]"
    for plain in PLAIN_CHARACTERS.values()
    if len(plain) == 1
}
