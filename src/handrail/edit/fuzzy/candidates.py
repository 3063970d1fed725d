"""Candidate places of an edit, with the differences that they need forgiven."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import msgspec

from handrail.edit.fuzzy.normalize import PLAIN_CHARACTERS, EditReading, split_plain_words, split_words, squash_spaces
from handrail.edit.lines import Span, find_line_end, find_line_start, find_places

MAX_COUNTED_PLACES = 1_000
"""Places that are counted if there should be one."""
_MIN_PART_CHARS, _MAX_PART_CHARS = 4, 1_000
"""Characters, without white space, of a text that is searched within lines."""
_MAX_SEARCH_STEPS = 50_000_000
_MAX_SPAN_CHARS = 20_000
"""Characters of the lines in which a part is searched."""
_CONTINUATION = re.compile(r"[.-]\w")

Pair = tuple[int | None, int | None]
"""Numbers of two lines that belong together. None if there is only one."""


class Wording(NamedTuple):
    """The names that messages use for the two texts of an edit, and for asking for all places."""

    old: str = "oldText"
    new: str = "newText"
    every: str = "set replaceAll"


OF_EDIT = Wording()


class UnsafeError(Exception):
    """The place is known, but the result of the edit would be a guess. `{old}` and `{new}` stand for the texts."""


class RefusedError(Exception):
    """The edit would be a guess at this place."""

    def __init__(self, span: Span, reason: str) -> None:
        super().__init__(reason)
        self.span = span


class Tolerance(IntEnum):
    """The differences that a candidate needs forgiven, the safest first."""

    NOTHING = 0
    LINE_ENDS = 1
    BOTH_SIDES = 2
    BOUNDARY = 3
    WHITE_SPACE = 4
    TYPOGRAPHY = 5
    TOKENS = 6


class Candidate(msgspec.Struct, frozen=True):
    """A place that the old text may mean."""

    reading: EditReading
    span: Span
    lines: list[str]
    """The lines of the place. The first and the last may be parts of lines."""
    pairs: list[Pair]
    """Lines of the old text beside lines of the place."""
    tolerance: Tolerance
    inside_line: bool = False
    """Whether it may start and end within a line."""

    @property
    def own_lines(self) -> dict[int, int]:
        """The line of the place for each line of the old text that has one."""
        return {i: j for i, j in self.pairs if i is not None and j is not None}

    def with_texts(self, old: list[str], new: list[str], pairs: list[Pair] | None = None) -> "Candidate":
        reading = self.reading._replace(old=old, new=new)
        return msgspec.structs.replace(self, reading=reading, pairs=self.pairs if pairs is None else pairs)


class IndexedText:
    """A text indexed by the normal form of its lines.

    One search serves every strategy that forgives white space and typography. The lines of a hit then tell how much
    it needs forgiven.
    """

    def __init__(self, text: str, normalize: Callable[[str], str] = squash_spaces) -> None:
        self.text = text
        self._normalize = normalize
        self.lines = text.split("\n")
        if not self.lines[-1]:
            self.lines.pop()
        self.starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))
        keys = normalize(text).split("\n")
        self.numbers = [number for number, key in enumerate(keys) if key]
        """Numbers of the lines that are not blank."""
        self.keys = [keys[number] for number in self.numbers]
        """Normal forms of these lines."""

    @cached_property
    def _joined(self) -> str:
        return "\n".join(("", *self.keys, ""))

    @cached_property
    def key_set(self) -> frozenset[str]:
        return frozenset(self.keys)

    def has_word(self, word: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text) is not None

    def line_of(self, position: int) -> int:
        return bisect_right(self.starts, position) - 1

    def find_lines(self, reading: EditReading, most: Tolerance = Tolerance.TYPOGRAPHY) -> Iterator[Candidate]:
        """Yield all places of whole lines within a tolerance, in the stated line if the reading has one."""
        full, keys = list_full_lines(reading.old, self._normalize)
        if not full:
            return
        wanted = "\n".join(("", *keys, ""))
        first = passed = 0
        for at, _ in find_places(self._joined, wanted):
            first += self._joined.count("\n", passed, at)
            passed = at
            numbers = self.numbers[first : first + len(full)]
            pairs, tolerance = pair_blank_lines(reading.old, self.lines, list(zip(full, numbers, strict=True)))
            candidate = self.build_candidate(reading, pairs, tolerance)
            if candidate.tolerance <= most and reading.stated in {None, self.line_of(candidate.span.start) + 1}:
                yield candidate

    def build_candidate(self, reading: EditReading, pairs: Sequence[Pair], tolerance: Tolerance) -> Candidate:
        numbers = [j for _, j in pairs if j is not None]
        first, last = numbers[0], numbers[-1]
        end = self.starts[last] + len(self.lines[last])
        span = Span(self.starts[first], min(end + reading.terminated, len(self.text)))
        own = [(i, None if j is None else j - first) for i, j in pairs]
        lines = self.lines[first : last + 1]
        return Candidate(reading, span, lines, own, max(tolerance, _measure_tolerance(reading.old, lines, own)))

    def find_inside(self, reading: EditReading, before: str, behind: str) -> Iterator[Candidate]:
        """Yield places within lines. `before` and `behind` are the white space around the old text."""
        full, keys = list_full_lines(reading.old)
        wanted = "\n".join(keys)
        if not _MIN_PART_CHARS <= len(wanted) <= _MAX_PART_CHARS:
            return
        spans = list(self._find_spans(wanted, len(full)))
        if sum(end - start for start, end in spans) * len(wanted) > _MAX_SEARCH_STEPS:
            return
        pattern = _compile_words(reading.old)
        for start, end in spans:
            match = pattern.search(self.text, start, end)
            while match is not None:
                if self._allows_edges(match.start(), match.end(), before, behind):
                    yield _build_inside(reading, full, match)
                match = pattern.search(self.text, match.start() + 1, end)

    def _allows_edges(self, start: int, end: int, before: str, behind: str) -> bool:
        if before and self.text[find_line_start(self.text, start) : start].strip():
            return False
        rest = self.text[end : find_line_end(self.text, end)]
        if ("\n" in behind and rest.strip()) or (behind and rest[:1].strip()):
            return False
        return _CONTINUATION.match(rest) is None or not _is_word(self.text[end - 1])

    def _find_spans(self, wanted: str, count: int) -> Iterator[Span]:
        """Yield the lines whose normal forms contain the wanted ones."""
        at, number, passed = self._joined.find(wanted), -1, 0
        while at >= 0:
            number += self._joined.count("\n", passed, at)
            passed = at
            first, last = self.numbers[number], self.numbers[number + count - 1]
            span = Span(self.starts[first], self.starts[last] + len(self.lines[last]))
            if span.end - span.start <= _MAX_SPAN_CHARS:
                yield span
            at = self._joined.find(wanted, self._joined.find("\n", at))  # the pattern finds the others in this line


def find_tolerance(wanted: str, line: str) -> Tolerance:
    if wanted == line:
        return Tolerance.NOTHING
    if wanted.rstrip() == line.rstrip():
        return Tolerance.LINE_ENDS
    if wanted.strip() == line.strip():
        return Tolerance.BOTH_SIDES
    if split_words(wanted) == split_words(line):
        return Tolerance.WHITE_SPACE
    return Tolerance.TYPOGRAPHY if split_plain_words(wanted) == split_plain_words(line) else Tolerance.TOKENS


def list_full_lines(lines: Sequence[str], form: Callable[[str], str] = squash_spaces) -> tuple[list[int], list[str]]:
    """Return the numbers of the lines that are not blank, and their normal forms."""
    keys = [form(line) for line in lines]
    full = [number for number, key in enumerate(keys) if key]
    return full, [keys[number] for number in full]


def pair_up(i: int, j: int, a: int, b: int) -> list[Pair]:
    """Pair `a` lines from `i` on with `b` lines from `j` on. The rest of the longer side stays alone."""
    return [(i + n if n < a else None, j + n if n < b else None) for n in range(max(a, b))]


def pair_blank_lines(old: Sequence[str], lines: Sequence[str], full: Sequence[Pair]) -> tuple[list[Pair], Tolerance]:
    """Add the blank lines to pairs of full lines: those around them only as far as both texts have them."""
    first, last = full[0], full[-1]
    lead, trail = first[0] or 0, len(old) - 1 - (last[0] or 0)
    above, below = _count_blank(lines, (first[1] or 0) - 1, -1, lead), _count_blank(lines, (last[1] or 0) + 1, 1, trail)
    tolerance = Tolerance.NOTHING if (above, below) == (lead, trail) else Tolerance.BOUNDARY
    pairs: list[Pair] = [(i, None) for i in range(lead - above)]
    i, j = lead - above, (first[1] or 0) - above
    for one, other in full:
        a, b = (i if one is None else one) - i, (j if other is None else other) - j
        pairs += [*pair_up(i, j, a, b), (one, other)]
        tolerance = tolerance if a == b else Tolerance.WHITE_SPACE
        i, j = i if one is None else one + 1, j if other is None else other + 1
    pairs += pair_up(i, j, below, below)
    pairs += [(n, None) for n in range(i + below, len(old))]
    return pairs, tolerance


def _count_blank(lines: Sequence[str], at: int, step: int, most: int) -> int:
    """Count blank lines from a line on, upwards or downwards."""
    count = 0
    while count < most and 0 <= at < len(lines) and not squash_spaces(lines[at]):
        count, at = count + 1, at + step
    return count


def _measure_tolerance(old: Sequence[str], lines: Sequence[str], pairs: Sequence[Pair]) -> Tolerance:
    needed = (find_tolerance(old[i], lines[j]) for i, j in pairs if i is not None and j is not None)
    return max(needed, default=Tolerance.NOTHING)


def _build_inside(reading: EditReading, full: list[int], match: re.Match[str]) -> Candidate:
    lines = match[0].split("\n")
    pairs, tolerance = pair_blank_lines(reading.old, lines, list(zip(full, list_full_lines(lines)[0], strict=True)))
    tolerance = max(tolerance, Tolerance.BOUNDARY, _measure_tolerance(reading.old, lines, pairs))
    return Candidate(reading, Span(*match.span()), lines, pairs, tolerance, inside_line=True)


def _compile_words(lines: Sequence[str]) -> re.Pattern[str]:
    """Compile the words and signs of lines, with any white space between them."""
    full = [words for words in map(split_plain_words, lines) if words]
    body = r"[^\S\n]*\n\s*".join("".join(_space_words(words)) for words in full)
    start, end = (r"\b" if _is_word(character) else "" for character in (full[0][0][0], full[-1][-1][-1]))
    return re.compile(rf"{start}{body}{end}")


def _space_words(words: list[str]) -> Iterator[str]:
    last = ""
    for word in words:
        if last:
            yield r"[^\S\n]+" if _is_word(last) and _is_word(word) else r"[^\S\n]*"
        yield "".join(_LOOKALIKES.get(character, re.escape(character)) for character in word)
        last = word


def _is_word(text: str) -> bool:
    return re.match(r"\w", text) is not None


_LOOKALIKES = {
    plain: f"[{''.join(map(re.escape, (plain, *(odd for odd in PLAIN_CHARACTERS if PLAIN_CHARACTERS[odd] == plain))))}]"
    for plain in PLAIN_CHARACTERS.values()
    if len(plain) == 1
}
