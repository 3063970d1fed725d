"""Finds the region of a text that is closest to another text, in bounded time.

The file is not compared line by line. A few rare lines of the wanted text are searched, then halves of lines, then
words. Each hit votes for a start of the region, and only the best few regions are compared.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import msgspec

from handrail.edit.fuzzy.candidates import Pair, pair_up
from handrail.edit.fuzzy.normalize import split_words
from handrail.edit.lines import find_line_end, find_line_start, find_places

MAX_COMPARED_CHARS = 400
"""Characters of a line that are compared."""
_MAX_SCANNED_CHARS = 60_000_000
"""Characters that are searched for each kind of pieces."""
_MAX_RARE_HITS = 24
"""A piece with more hits says little."""
_MAX_SKIPPED_LINES = 8
"""Lines of both texts together that alignment may skip until they agree again."""
_SKIPS = sorted(
    ((a, b) for a in range(_MAX_SKIPPED_LINES + 1) for b in range(_MAX_SKIPPED_LINES + 1 - a) if a or b),
    key=lambda skip: (sum(skip), abs(skip[0] - skip[1])),
)
"""Fewest lines first, and of as many the most balanced."""
_CANDIDATE_REGIONS = 6
"""Regions that are compared. Short ones may be more."""
_MAX_COMPARED_LINES = 600
"""Lines of a region that are compared."""
_MAX_REGIONS_CHARS = 4_000_000
"""Characters of all regions together. Longer lines are compared in part."""
_SLACK_LINES = 8
"""Lines that a region may have more than the wanted text."""
_MIN_SCORE = 0.5
"""Share of the wanted text that a region must have."""
_MAX_SOUGHT_WORDS = 8
"""Words of a line that are searched in a long line, longest first."""
_MAX_COMPARED_PIECES, _PIECE_ROOM_CHARS = 24, 10_000
"""Pieces of a long line that are compared, and characters of the line for each of them."""

Pieces = Iterator[tuple[str, int]]
"""Pieces of the wanted text with the number of their line."""


class Region(msgspec.Struct, frozen=True):
    """Lines of a text beside the wanted lines."""

    first: int
    """Number of the first line, from 1."""
    lines: list[str]
    """The compared part of the lines."""
    wanted: list[str]
    pairs: list[Pair]
    """Numbers of the wanted lines and of the lines beside them."""

    @property
    def last(self) -> int:
        return self.first + max((j for _, j in self.pairs if j is not None), default=0)


class _Hit(NamedTuple):
    """A piece of the wanted text in the text."""

    position: int
    line: int
    """Number of its line in the wanted text."""
    weight: float


def find_closest_region(text: str, old: str) -> Region | None:
    """Return the lines most like `old`, or None if none are."""
    wanted = _trim_blank_lines(old)
    if not wanted or not text:
        return None
    common: list[_Hit] = []
    for split in (_split_lines, _split_halves, _split_long_words):
        rare, more = _find_hits(text, _select_longest(split(wanted), len(text)))
        region = _compare_regions(text, wanted, rare)
        if region is not None:
            return region
        common += more
    return _compare_regions(text, wanted, common)


def align_lines(wanted: Sequence[str], lines: Sequence[str]) -> list[Pair]:
    """Pair every wanted line with a line, or with None. White space is ignored.

    This is greedy, which is fast and good enough for a message. Only the start of a long line is compared.
    """
    one, other = (
        [" ".join(line[: 2 * MAX_COMPARED_CHARS].split())[:MAX_COMPARED_CHARS] for line in text]
        for text in (wanted, lines)
    )
    pairs: list[Pair] = []
    i = j = 0
    while i < len(one) and j < len(other):
        a, b = _count_skipped(one, other, i, j)
        pairs += pair_up(i, j, a, b)
        i, j = i + a, j + b
        if not a and not b:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs + [(number, None) for number in range(i, len(one))]


def find_similar_piece(line: str, wanted: str) -> str:
    """Return the part of a long line that is most like the wanted line, found by the rarest of its words."""
    if len(line) <= MAX_COMPARED_CHARS:
        return line
    words = sorted(set(re.findall(r"\w+", wanted[:MAX_COMPARED_CHARS])), key=lambda word: (-len(word), word))
    counts = {word: count for word in words[:_MAX_SOUGHT_WORDS] if (count := line.count(word))}
    if not counts:
        return line[:MAX_COMPARED_CHARS]
    word = min(counts, key=counts.__getitem__)
    most = min(_MAX_COMPARED_PIECES, 1 + len(line) // _PIECE_ROOM_CHARS)
    starts = (max(0, match.start() - wanted.find(word)) for match in re.finditer(re.escape(word), line))
    length = min(len(wanted), MAX_COMPARED_CHARS)
    pieces = (line[start : start + length] for start in itertools.islice(starts, most))
    return max(pieces, key=lambda piece: _measure_overlap(wanted, piece))


def _trim_blank_lines(old: str) -> list[str]:
    lines = old.strip("\n").split("\n", _MAX_COMPARED_LINES)[:_MAX_COMPARED_LINES]
    full = [number for number, line in enumerate(lines) if line.strip()]
    return lines[full[0] : full[-1] + 1] if full else []


def _split_lines(wanted: Sequence[str]) -> Pieces:
    return ((line.strip()[:MAX_COMPARED_CHARS], number) for number, line in enumerate(wanted))


def _split_halves(wanted: Sequence[str]) -> Pieces:
    """If one word of a line differs, one half of the line is often unchanged."""
    for line, number in _split_lines(wanted):
        half = len(line) // 2
        yield from ((piece, number) for piece in (line[:half].strip(), line[half:].strip()) if len(piece) >= 8)


def _split_long_words(wanted: Sequence[str]) -> Pieces:
    for number, line in enumerate(wanted):
        yield from ((word, number) for word in re.findall(r"\w{2,}", line[:MAX_COMPARED_CHARS]))


def _select_longest(pieces: Pieces, size: int) -> list[tuple[str, int]]:
    """Select the longest pieces, which are likely to be rare. Their number depends on the size of the text."""
    first = {piece: number for piece, number in reversed(list(pieces)) if piece}
    most = max(2, min(40, _MAX_SCANNED_CHARS // (size + 1)))
    return sorted(first.items(), key=lambda item: -len(item[0]))[:most]


def _find_hits(text: str, pieces: Iterable[tuple[str, int]]) -> tuple[list[_Hit], list[_Hit]]:
    """Return the hits of rare pieces, and the first hits of common ones."""
    rare: list[_Hit] = []
    common: list[_Hit] = []
    for piece, number in pieces:
        places = list(itertools.islice(find_places(text, piece, overlapping=False), _MAX_RARE_HITS + 1))
        hits = rare if len(places) <= _MAX_RARE_HITS else common
        hits += (_Hit(place.start, number, len(piece) / len(places)) for place in places)
    return rare, common


def _compare_regions(text: str, wanted: list[str], hits: list[_Hit]) -> Region | None:
    most = max(_CANDIDATE_REGIONS, 10 * _CANDIDATE_REGIONS // len(wanted))
    starts = list(itertools.islice(_rank_starts(text, hits), most))
    count = len(wanted) + (_SLACK_LINES if len(wanted) > 1 else 0)
    width = _MAX_REGIONS_CHARS // (count * max(1, len(starts)))
    # Lazily: only the best region so far is in memory.
    regions = (_build_region(text, line, hit, count, width, wanted) for line, hit in starts)
    score, best = max(((_score(region), region) for region in regions), key=itemgetter(0), default=(0.0, None))
    return best if score >= _MIN_SCORE else None


def _rank_starts(text: str, hits: Iterable[_Hit]) -> Iterator[tuple[int, _Hit]]:
    """Yield the lines that the hits vote for as the start of the region, most votes first, with the best hit."""
    votes: dict[int, float] = {}
    heaviest: dict[int, _Hit] = {}
    at = line = 0
    for hit in sorted(hits):
        line += text.count("\n", at, hit.position)
        at = hit.position
        start = max(0, line - hit.line)
        votes[start] = votes.get(start, 0) + hit.weight
        heaviest[start] = max(heaviest.get(start, hit), hit, key=lambda hit: hit.weight)
    yield from ((start, heaviest[start]) for start in sorted(votes, key=lambda start: -votes[start]))


def _build_region(text: str, first: int, hit: _Hit, count: int, width: int, wanted: list[str]) -> Region:
    """Take `count` lines. Of a line longer than `width`, take its start, or the part around the hit."""
    lines: list[str] = []
    at = find_line_start(text, hit.position, hit.line)
    while len(lines) < count and at < len(text):
        end = find_line_end(text, at)
        low = max(at, hit.position - width // 2) if end - at > width and at <= hit.position < end else at
        lines.append(text[low : min(end, low + width)].removesuffix("\n"))
        at = end
    return Region(first + 1, lines, wanted, align_lines(wanted, lines))


def _score(region: Region) -> float:
    full = sum(1 for line in region.wanted if line.strip())
    pairs = ((region.wanted[i], region.lines[j]) for i, j in region.pairs if i is not None and j is not None)
    return sum(_measure_likeness(wanted, line) for wanted, line in pairs if wanted.strip()) / full


def _measure_likeness(wanted: str, line: str) -> float:
    if wanted == line:
        return 1.0
    if wanted.strip() == line.strip():
        return 0.95
    return 0.9 * _measure_overlap(wanted, find_similar_piece(line, wanted))


def _measure_overlap(wanted: str, piece: str) -> float:
    """Return the share of words, or of letters, that both have: one long common name outweighs a digit that differs."""
    words = Counter(split_words(wanted[:MAX_COMPARED_CHARS]))
    shared = words & Counter(split_words(piece))
    return max(shared.total() / max(1, words.total()), _count_letters(shared) / max(1, _count_letters(words)))


def _count_letters(words: Counter[str]) -> int:
    return sum(len(word) * count for word, count in words.items())


def _count_skipped(one: Sequence[str], other: Sequence[str], i: int, j: int) -> tuple[int, int]:
    """Return how many lines of each text to skip until two agree, or 1 and 1 if that is not soon."""
    if one[i] == other[j]:
        return 0, 0
    for a, b in _SKIPS:
        if i + a < len(one) and j + b < len(other) and one[i + a] and one[i + a] == other[j + b]:
            return a, b
    return 1, 1
