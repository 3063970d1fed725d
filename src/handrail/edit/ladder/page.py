"""A text that is searched for places that say the same, whatever their white space is and however they look.

One search serves every strategy that forgives white space and typography: on lines without either. What a place then
needs forgiven, line by line, tells how safe it is.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from handrail.edit.ladder.fitting import Candidate, Pair, Tolerance, find_tolerance, pair_blank_lines
from handrail.edit.ladder.reading import EditReading
from handrail.edit.ladder.tokens import split_plain_words
from handrail.edit.ladder.typography import PLAIN_CHARACTERS, squash_spaces
from handrail.edit.lines import find_line_end, find_line_start
from handrail.edit.matching import Span

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
