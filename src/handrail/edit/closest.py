"""The region of a text that comes closest to a text that is not in it, in bounded time whatever the two are.

The lines of the file are not looked at one by one: a few rare lines of what is looked for (halves of lines or words,
where no line is there as it is) are searched, each hit votes for where the region would begin, and only the best few
are compared.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from handrail.edit.alignment import Pair, aligned
from handrail.edit.lines import end_of_line

_SCANNED = 60_000_000
"""Characters that are searched at most for each kind of pieces."""
_HITS = 24
"""Of one line or word: what is there more often says little."""
_CANDIDATES = 6
"""Regions that are compared; more of them where they are short."""
_COMPARED = 600
"""Lines of a region that are compared."""
_WIDE = 400
"""Characters of a line that are compared."""
_SLACK = 8
"""Lines that a region may have more than what is looked for."""
_ALIKE = 0.5
"""How much of what is looked for a region must have to be worth naming."""
_PART = re.compile(r"\w+|[^\w\s]")


class _Hit(NamedTuple):
    """A piece of what is looked for."""

    position: int
    line: int
    """Of what is looked for."""
    weight: float
    """How much it says."""


class Region(msgspec.Struct, frozen=True):
    """Lines of a text beside the lines that were looked for."""

    first: int
    """The number of the first line, from 1."""
    lines: list[str]
    wanted: list[str]
    pairs: list[Pair]

    @property
    def last(self) -> int:
        """The number of the last line that belongs to the region."""
        return self.first + max((j for _, j in self.pairs if j is not None), default=0)


def closest(text: str, old: str) -> Region | None:
    """The lines most like `old`; None where nothing is like it."""
    wanted = _wanted(old)
    if not wanted or not text:
        return None
    often: list[_Hit] = []
    for pieces in (_whole_lines, _halves, _words):
        rare, more = _hits(text, _rarest(pieces(wanted), len(text)))
        found = _best(text, wanted, rare)
        if found is not None:
            return found
        often += more
    return _best(text, wanted, often)


def _best(text: str, wanted: list[str], hits: list[_Hit]) -> Region | None:
    most = max(_CANDIDATES, 10 * _CANDIDATES // len(wanted))
    regions = [_region(text, start, wanted) for start in _starts(text, hits)[:most]]
    best = max(regions, key=_score, default=None)
    return best if best and _score(best) >= _ALIKE else None


def _wanted(old: str) -> list[str]:
    """The lines that are looked for, without blank ones at either end."""
    lines = old.strip("\n").split("\n", _COMPARED)[:_COMPARED]
    full = [number for number, line in enumerate(lines) if line.strip()]
    return lines[full[0] : full[-1] + 1] if full else []


def _whole_lines(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    return ((line.strip()[:_WIDE], number) for number, line in enumerate(wanted))


def _halves(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Where one word of a line is another, one half of it is often still there."""
    for line, number in _whole_lines(wanted):
        half = len(line) // 2
        yield from ((piece, number) for piece in (line[:half].strip(), line[half:].strip()) if len(piece) >= 8)


def _words(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(wanted):
        yield from ((word, number) for word in re.findall(r"\w{2,}", line[:_WIDE]))


def _rarest(pieces: Iterable[tuple[str, int]], size: int) -> list[tuple[str, int]]:
    """The longest, as they are likely to be rare; as many as there is time to look for."""
    first = {piece: number for piece, number in reversed(list(pieces)) if piece}
    most = max(4, min(40, _SCANNED // (size + 1)))
    return sorted(first.items(), key=lambda item: -len(item[0]))[:most]


def _hits(text: str, pieces: Iterable[tuple[str, int]]) -> tuple[list[_Hit], list[_Hit]]:
    """Where pieces are, those that are rare and the first of those that are not."""
    rare: list[_Hit] = []
    often: list[_Hit] = []
    for piece, number in pieces:
        places: list[int] = []
        at = text.find(piece)
        while at >= 0 and len(places) <= _HITS:
            places.append(at)
            at = text.find(piece, at + len(piece))
        hits = rare if len(places) <= _HITS else often
        hits += (_Hit(place, number, len(piece) / len(places)) for place in places)
    return rare, often


def _starts(text: str, hits: Iterable[_Hit]) -> list[int]:
    """The lines, from 0, where hits say that the region begins; what most of them say first."""
    votes: dict[int, float] = {}
    at = line = 0
    for position, number, weight in sorted(hits):
        line += text.count("\n", at, position)
        at = position
        start = max(0, line - number)
        votes[start] = votes.get(start, 0) + weight
    return sorted(votes, key=lambda start: -votes[start])


def _region(text: str, start: int, wanted: list[str]) -> Region:
    at = _position(text, start)
    end = end_of_line(text, at, len(wanted) - 1 + (_SLACK if len(wanted) > 1 else 0))
    lines = text[at:end].removesuffix("\n").split("\n")
    return Region(start + 1, lines, wanted, aligned(wanted, lines))


def _position(text: str, line: int) -> int:
    """Where a line, from 0, begins: blocks are counted, only the last one is walked through."""
    position, block = 0, 1 << 16
    while line and (found := text.count("\n", position, position + block)) < line:
        position, line = position + block, line - found
    for _ in range(line):
        position = text.index("\n", position) + 1
    return position


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
    parts = Counter(_PART.findall(wanted[:_WIDE]))
    shared = parts & Counter(_PART.findall(piece_like(line, wanted)))
    return 0.9 * shared.total() / max(1, parts.total())


def piece_like(line: str, wanted: str) -> str:
    """Of a line that is too long to compare, the part where the longest word of the other one is."""
    if len(line) <= _WIDE:
        return line
    for word in sorted(re.findall(r"\w+", wanted[:_WIDE]), key=len, reverse=True):
        at = line.find(word)
        if at >= 0:
            start = max(0, at - wanted.find(word))
            return line[start : start + min(len(wanted), _WIDE)]
    return line[:_WIDE]
