"""How a place fits the lines that are looked for: which line means which, and what has to be forgiven."""

from collections.abc import Sequence
from enum import IntEnum

import msgspec

from handrail.edit.ladder.reading import EditReading
from handrail.edit.ladder.tokens import split_plain_words, split_words
from handrail.edit.ladder.typography import squash_spaces
from handrail.edit.matching import Span

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
