"""Finds the region of a text that is closest to another text, in bounded time."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import msgspec

from handrail.edit.lines import find_line_end, find_line_start

# § [edit.refusals.hits] Pieces of what is looked for, and where in a text they are.

_MAX_SCANNED_CHARS = 60_000_000
"""Characters that are searched at most for each kind of pieces."""
_MAX_RARE_HITS = 24
"""Of one line or word: what is there more often says little."""
MAX_COMPARED_CHARACTERS = 400
"""Characters of a line that are compared."""


class Hit(NamedTuple):
    """Where a piece of what is looked for is."""

    position: int
    line: int
    """Of what is looked for."""
    weight: float
    """How much it says."""


def split_whole_lines(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Lines, without the white space around them, with their numbers."""
    return ((line.strip()[:MAX_COMPARED_CHARACTERS], number) for number, line in enumerate(wanted))


def split_halves(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Where one word of a line is another, one half of it is often still there."""
    for line, number in split_whole_lines(wanted):
        half = len(line) // 2
        yield from ((piece, number) for piece in (line[:half].strip(), line[half:].strip()) if len(piece) >= 8)


def split_numbered_words(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Words, with the numbers of their lines."""
    for number, line in enumerate(wanted):
        yield from ((word, number) for word in re.findall(r"\w{2,}", line[:MAX_COMPARED_CHARACTERS]))


def select_rarest(pieces: Iterable[tuple[str, int]], size: int) -> list[tuple[str, int]]:
    """The longest, as they are likely to be rare; as many as there is time to look for."""
    first = {piece: number for piece, number in reversed(list(pieces)) if piece}
    most = max(2, min(40, _MAX_SCANNED_CHARS // (size + 1)))
    return sorted(first.items(), key=lambda item: -len(item[0]))[:most]


def find_piece_hits(text: str, pieces: Iterable[tuple[str, int]]) -> tuple[list[Hit], list[Hit]]:
    """Where pieces are, those that are rare and the first of those that are not."""
    rare: list[Hit] = []
    often: list[Hit] = []
    for piece, number in pieces:
        places: list[int] = []
        at = text.find(piece)
        while at >= 0 and len(places) <= _MAX_RARE_HITS:
            places.append(at)
            at = text.find(piece, at + len(piece))
        found = rare if len(places) <= _MAX_RARE_HITS else often
        found += (Hit(place, number, len(piece) / len(places)) for place in places)
    return rare, often


# § [edit.refusals.alignment] Puts the lines of two texts beside each other, one step at a time: quick, and good
# § enough to tell a difference.

_MAX_SKIPPED_LINES = 8
"""Lines, of both texts together, that may be skipped until the two agree again."""
Pair = tuple[int | None, int | None]
"""The numbers of two lines that belong together; None where there is only one."""


def align_lines(wanted: Sequence[str], lines: Sequence[str]) -> list[Pair]:
    """Every line of `wanted`, and those of `lines` between its first and its last; white space does not count.

    Nor does what is far on in a line: taking it all apart would take long where lines are megabytes.
    """
    one, other = (
        [" ".join(line[: 2 * MAX_COMPARED_CHARACTERS].split())[:MAX_COMPARED_CHARACTERS] for line in text]
        for text in (wanted, lines)
    )
    pairs: list[Pair] = []
    i = j = 0
    while i < len(one) and j < len(other):
        skipped = _skipped(one, other, i, j)
        pairs += _beside(i, j, *skipped)
        i, j = i + skipped[0], j + skipped[1]
        if skipped == (0, 0):
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs + [(number, None) for number in range(i, len(one))]


def _skipped(one: Sequence[str], other: Sequence[str], i: int, j: int) -> tuple[int, int]:
    """How many lines of each to skip until two agree; one of each where that is not soon."""
    if one[i] == other[j]:
        return 0, 0
    for a, b in _STEPS:
        if i + a < len(one) and j + b < len(other) and one[i + a] and one[i + a] == other[j + b]:
            return a, b
    return 1, 1


def _steps() -> Iterator[tuple[int, int]]:
    """Fewest lines first, and of as many those that skip equally on both sides."""
    for total in range(1, _MAX_SKIPPED_LINES + 1):
        yield from sorted(((a, total - a) for a in range(total + 1)), key=lambda step: abs(step[0] - step[1]))


_STEPS = tuple(_steps())


def _beside(i: int, j: int, a: int, b: int) -> Iterator[Pair]:
    """Skipped lines in pairs, and what is left of the longer side alone."""
    for step in range(max(a, b)):
        yield (i + step if step < a else None, j + step if step < b else None)


# § [edit.refusals.closest] The region of a text that comes closest to a text that is not in it, in bounded time
# § whatever the two are.  The lines of the file are not looked at one by one: a few rare lines of what is looked
# § for (halves of lines or words, where no line is there as it is) are searched, each hit votes for where the
# § region would begin, and only the best few are compared.

_CANDIDATE_REGIONS = 6
"""Regions that are compared; more of them where they are short."""
_MAX_COMPARED_LINES = 600
"""Lines of a region that are compared."""
_MAX_REGIONS_CHARS = 4_000_000
"""Characters of all regions together: where lines are longer than that allows, a part of each is compared."""
_SLACK_LINES = 8
"""Lines that a region may have more than what is looked for."""
_ALIKE = 0.5
"""How much of what is looked for a region must have to be worth naming."""
_MAX_SOUGHT_WORDS = 8
"""Words of a line that are looked for in another one, the longest."""
_MAX_COMPARED_PIECES, _PIECE_ROOM_CHARS = 24, 10_000
"""Pieces of a long line that are compared, at most; and characters of the line for each of them."""
_PART = re.compile(r"\w+|[^\w\s]")


class _Start(NamedTuple):
    """Where a region begins: the line, from 0, and the position; and a hit that says so."""

    line: int
    position: int
    hit: int


class Region(msgspec.Struct, frozen=True):
    """Lines of a text beside the lines that were looked for."""

    first: int
    """The number of the first line, from 1."""
    lines: list[str]
    """As much of them as is compared."""
    wanted: list[str]
    pairs: list[Pair]

    @property
    def last(self) -> int:
        """The number of the last line that belongs to the region."""
        return self.first + max((j for _, j in self.pairs if j is not None), default=0)


def find_closest_region(text: str, old: str) -> Region | None:
    """The lines most like `old`; None where nothing is like it."""
    wanted = _wanted(old)
    if not wanted or not text:
        return None
    often: list[Hit] = []
    for pieces in (split_whole_lines, split_halves, split_numbered_words):
        rare, more = find_piece_hits(text, select_rarest(pieces(wanted), len(text)))
        found = _best(text, wanted, rare)
        if found is not None:
            return found
        often += more
    return _best(text, wanted, often)


def _best(text: str, wanted: list[str], hits: list[Hit]) -> Region | None:
    most = max(_CANDIDATE_REGIONS, 10 * _CANDIDATE_REGIONS // len(wanted))
    starts = list(itertools.islice(_starts(text, hits), most))
    count = len(wanted) + (_SLACK_LINES if len(wanted) > 1 else 0)
    width = _MAX_REGIONS_CHARS // (count * max(1, len(starts)))
    # One after the other: only the best so far is kept.
    regions = (_region(start.line + 1, _lines(text, start, count, width), wanted) for start in starts)
    score, best = max(((_score(region), region) for region in regions), key=itemgetter(0), default=(0.0, None))
    return best if score >= _ALIKE else None


def _wanted(old: str) -> list[str]:
    """The lines that are looked for, without blank ones at either end."""
    lines = old.strip("\n").split("\n", _MAX_COMPARED_LINES)[:_MAX_COMPARED_LINES]
    full = [number for number, line in enumerate(lines) if line.strip()]
    return lines[full[0] : full[-1] + 1] if full else []


def _starts(text: str, hits: Iterable[Hit]) -> Iterator[_Start]:
    """Where hits say that the region begins; what most of them say first."""
    votes: dict[int, float] = {}
    one: dict[int, Hit] = {}
    at = line = 0
    for hit in sorted(hits):
        line += text.count("\n", at, hit.position)
        at = hit.position
        start = max(0, line - hit.line)
        votes[start] = votes.get(start, 0) + hit.weight
        one[start] = max(one.get(start, hit), hit, key=lambda hit: hit.weight)
    for start in sorted(votes, key=lambda start: -votes[start]):
        hit = one[start].position
        yield _Start(start, find_line_start(text, hit, one[start].line), hit)


def _lines(text: str, start: _Start, count: int, width: int) -> list[str]:
    """So many lines; of those that are too long the beginning, or what is around the hit."""
    lines: list[str] = []
    at = start.position
    while len(lines) < count and at < len(text):
        end = find_line_end(text, at)
        low = max(at, start.hit - width // 2) if end - at > width and at <= start.hit < end else at
        lines.append(text[low : min(end, low + width)].removesuffix("\n"))
        at = end
    return lines


def _region(first: int, lines: list[str], wanted: list[str]) -> Region:
    return Region(first, lines, wanted, align_lines(wanted, lines))


def _score(region: Region) -> float:
    """How much of the wanted lines is there, from 0 to 1."""
    full = sum(1 for line in region.wanted if line.strip())
    pairs = ((region.wanted[i], region.lines[j]) for i, j in region.pairs if i is not None and j is not None)
    return sum(_alike(wanted, line) for wanted, line in pairs if wanted.strip()) / full


def _alike(wanted: str, line: str) -> float:
    if wanted == line:
        return 1.0
    if wanted.strip() == line.strip():
        return 0.95
    return 0.9 * _shared(wanted, find_similar_piece(line, wanted))


def _shared(wanted: str, piece: str) -> float:
    """How much of a line another one has, by the number of its parts or by their letters: one long name in common says
    more than a digit that differs."""
    parts = Counter(_PART.findall(wanted[:MAX_COMPARED_CHARACTERS]))
    shared = parts & Counter(_PART.findall(piece))
    return max(shared.total() / max(1, parts.total()), _letters(shared) / max(1, _letters(parts)))


def _letters(parts: Counter[str]) -> int:
    return sum(len(part) * count for part, count in parts.items())


def find_similar_piece(line: str, wanted: str) -> str:
    """Of a line that is too long to compare, the part that is most like the other one, by the rarest of its words."""
    if len(line) <= MAX_COMPARED_CHARACTERS:
        return line
    longest = sorted(set(re.findall(r"\w+", wanted[:MAX_COMPARED_CHARACTERS])), key=lambda word: (-len(word), word))[
        :_MAX_SOUGHT_WORDS
    ]
    counts = {word: count for word in longest if (count := line.count(word))}
    if not counts:
        return line[:MAX_COMPARED_CHARACTERS]
    word = min(counts, key=counts.__getitem__)
    most = min(_MAX_COMPARED_PIECES, 1 + len(line) // _PIECE_ROOM_CHARS)
    starts = (max(0, found.start() - wanted.find(word)) for found in re.finditer(re.escape(word), line))
    pieces = (
        line[start : start + min(len(wanted), MAX_COMPARED_CHARACTERS)] for start in itertools.islice(starts, most)
    )
    return max(pieces, key=lambda piece: _shared(wanted, piece))
