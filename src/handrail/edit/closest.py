"""The region of a text that comes closest to a text that is not in it, in bounded time whatever the two are.

The lines of the file are not looked at one by one: a few rare lines of what is looked for (halves of lines or words,
where no line is there as it is) are searched, each hit votes for where the region would begin, and only the best few
are compared.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from handrail.edit.alignment import Pair, aligned
from handrail.edit.hits import WIDE, Hit, halves, hits, rarest, whole_lines, words
from handrail.edit.lines import end_of_line, start_of_line

_CANDIDATES = 6
"""Regions that are compared; more of them where they are short."""
_COMPARED = 600
"""Lines of a region that are compared."""
_SLACK = 8
"""Lines that a region may have more than what is looked for."""
_ALIKE = 0.5
"""How much of what is looked for a region must have to be worth naming."""
_PART = re.compile(r"\w+|[^\w\s]")


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
    often: list[Hit] = []
    for pieces in (whole_lines, halves, words):
        rare, more = hits(text, rarest(pieces(wanted), len(text)))
        found = _best(text, wanted, rare)
        if found is not None:
            return found
        often += more
    return _best(text, wanted, often)


def _best(text: str, wanted: list[str], hits: list[Hit]) -> Region | None:
    most = max(_CANDIDATES, 10 * _CANDIDATES // len(wanted))
    regions = [_region(text, line, start, wanted) for line, start in itertools.islice(_starts(text, hits), most)]
    best = max(regions, key=_score, default=None)
    return best if best and _score(best) >= _ALIKE else None


def _wanted(old: str) -> list[str]:
    """The lines that are looked for, without blank ones at either end."""
    lines = old.strip("\n").split("\n", _COMPARED)[:_COMPARED]
    full = [number for number, line in enumerate(lines) if line.strip()]
    return lines[full[0] : full[-1] + 1] if full else []


def _starts(text: str, hits: Iterable[Hit]) -> Iterator[tuple[int, int]]:
    """The line, from 0, and the position where hits say that the region begins; what most of them say first."""
    votes: dict[int, float] = {}
    one: dict[int, Hit] = {}
    at = line = 0
    for hit in sorted(hits):
        line += text.count("\n", at, hit.position)
        at = hit.position
        start = max(0, line - hit.line)
        votes[start] = votes.get(start, 0) + hit.weight
        one[start] = hit
    for start in sorted(votes, key=lambda start: -votes[start]):
        yield start, start_of_line(text, one[start].position, one[start].line)


def _region(text: str, line: int, start: int, wanted: list[str]) -> Region:
    end = end_of_line(text, start, len(wanted) - 1 + (_SLACK if len(wanted) > 1 else 0))
    lines = text[start:end].removesuffix("\n").split("\n")
    return Region(line + 1, lines, wanted, aligned(wanted, lines))


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
    parts = Counter(_PART.findall(wanted[:WIDE]))
    shared = parts & Counter(_PART.findall(piece_like(line, wanted)))
    return 0.9 * shared.total() / max(1, parts.total())


def piece_like(line: str, wanted: str) -> str:
    """Of a line that is too long to compare, the part where the longest word of the other one is."""
    if len(line) <= WIDE:
        return line
    for word in sorted(re.findall(r"\w+", wanted[:WIDE]), key=len, reverse=True):
        at = line.find(word)
        if at >= 0:
            start = max(0, at - wanted.find(word))
            return line[start : start + min(len(wanted), WIDE)]
    return line[:WIDE]
