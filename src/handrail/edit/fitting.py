"""How a place fits the lines that are looked for: which line means which, and what has to be forgiven."""

from collections.abc import Sequence
from enum import IntEnum

import msgspec

from handrail.edit.matching import Span
from handrail.edit.reading import Reading
from handrail.edit.tokens import plain_words, words
from handrail.edit.typography import squashed

Pair = tuple[int | None, int | None]
"""A line of the old text and the line of the place that it means; None where there is only one."""


class Rung(IntEnum):
    """What had to be forgiven, the safest first."""

    NOTHING = 0
    LINE_ENDS = 1
    BOTH_SIDES = 2
    BOUNDARY = 3
    WHITE_SPACE = 4
    TYPOGRAPHY = 5
    TOKENS = 6


class Fit(msgspec.Struct, frozen=True):
    """A place, and which of its lines each line of the old text means."""

    reading: Reading
    span: Span
    lines: list[str]
    """The lines of the place; the first and the last may be parts of lines."""
    pairs: list[Pair]
    rung: Rung
    inside_line: bool = False
    """Whether it may begin and end within a line."""


def with_blanks(old: Sequence[str], lines: Sequence[str], full: Sequence[Pair]) -> tuple[list[Pair], Rung]:
    """The pairs of lines that are not blank, and the blank ones around them as far as both have them."""
    first, last = full[0], full[-1]
    lead, trail = first[0] or 0, len(old) - 1 - (last[0] or 0)
    above, below = _blank(lines, (first[1] or 0) - 1, -1, lead), _blank(lines, (last[1] or 0) + 1, 1, trail)
    rung = Rung.NOTHING if (above, below) == (lead, trail) else Rung.BOUNDARY
    pairs: list[Pair] = [(i, None) for i in range(lead - above)]
    i, j = lead - above, (first[1] or 0) - above
    for one, other in full:
        between = (i if one is None else one) - i, (j if other is None else other) - j
        pairs += _beside(i, j, *between)
        pairs.append((one, other))
        rung = rung if between[0] == between[1] else Rung.WHITE_SPACE
        i, j = i if one is None else one + 1, j if other is None else other + 1
    pairs += [(i + n, j + n) for n in range(below)]
    pairs += [(n, None) for n in range(i + below, len(old))]
    return pairs, rung


def forgiven(wanted: str, line: str) -> Rung:
    """What a line needs forgiven."""
    if wanted == line:
        return Rung.NOTHING
    if wanted.rstrip() == line.rstrip():
        return Rung.LINE_ENDS
    if wanted.strip() == line.strip():
        return Rung.BOTH_SIDES
    if words(wanted) == words(line):
        return Rung.WHITE_SPACE
    return Rung.TYPOGRAPHY if plain_words(wanted) == plain_words(line) else Rung.TOKENS


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
    while count < most and 0 <= at < len(lines) and not squashed(lines[at]):
        count, at = count + 1, at + step
    return count
