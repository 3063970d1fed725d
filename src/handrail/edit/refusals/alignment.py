"""Puts the lines of two texts beside each other, one step at a time: quick, and good enough to tell a difference."""

from collections.abc import Iterator, Sequence

from handrail.edit.refusals.hits import MAX_COMPARED_CHARACTERS

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
