"""Old texts with a mark in the place of lines that are left out: `...` in both texts, for lines that stay."""

from collections.abc import Container, Sequence
from itertools import islice, pairwise

from handrail.edit.ladder.fitting import Candidate
from handrail.edit.ladder.page import IndexedText
from handrail.edit.ladder.reading import EditReading
from handrail.edit.ladder.tokens import extract_indent
from handrail.edit.ladder.typography import squash_spaces
from handrail.edit.omission.marks import is_mark

_MAX_ELIDED_LINES = 400
"""Lines that a mark may stand for."""
_MAX_PART_PLACES = 200
"""Places that a part between two marks may have."""
_MAX_PARTS = 50
_MIN_TELLING_CHARS = 8
"""Characters of a line above which it is no chance that it is there twice."""


def find_elided_parts(page: IndexedText, reading: EditReading) -> list[list[Candidate]]:
    """The parts between the marks that change, each with its places; nothing where there are no marks, or a part is
    not there behind the one before it. What is in the file itself is no mark."""
    there = {squash_spaces(line) for line in reading.old if is_mark(line)}
    there.intersection_update(page.keys)
    old, new = _segments(reading.old, there), _segments(reading.new, there)
    if len(old) < 2 or len(old) != len(new):
        return []
    last = len(old) - 1
    parts = [
        EditReading("elision", one, other, terminated=number < last or reading.terminated)
        for number, (one, other) in enumerate(zip(old, new, strict=True))
        if any(map(str.strip, one)) or any(map(str.strip, other))
    ]
    if len(parts) > _MAX_PARTS:
        return []
    found = [list(islice(page.fits(part), _MAX_PART_PLACES + 1)) for part in parts]
    if any(len(fits) > _MAX_PART_PLACES for fits in found):
        return []
    _keep_reachable(found, page)
    if not all(found) or not _in_one_block(found, parts, page) or _comes_twice(found, parts, page):
        return []
    return [fits for part, fits in zip(parts, found, strict=True) if part.old != part.new]


def _segments(lines: Sequence[str], there: Container[str]) -> list[list[str]]:
    """The lines between the marks."""
    segments: list[list[str]] = [[]]
    for line in lines:
        if is_mark(line) and squash_spaces(line) not in there:
            segments.append([])
        else:
            segments[-1].append(line)
    return segments


def _keep_reachable(layers: list[list[Candidate]], page: IndexedText) -> None:
    """Of each part the places that are not far behind one of the part before it, and before one of the part after."""
    for before, after in pairwise(layers):
        after[:] = [fit for fit in after if any(_follows(page, one, fit) for one in before)]
    for before, after in reversed(list(pairwise(layers))):
        before[:] = [fit for fit in before if any(_follows(page, fit, one) for one in after)]


def _follows(page: IndexedText, one: Candidate, other: Candidate) -> bool:
    return other.span.start - one.span.end >= 0 and len(_between(page, one, other)) <= _MAX_ELIDED_LINES


def _between(page: IndexedText, one: Candidate, other: Candidate) -> Sequence[str]:
    return page.lines[page.line_of(one.span.end - 1) + 1 : page.line_of(other.span.start)]


def _in_one_block(layers: list[list[Candidate]], parts: Sequence[EditReading], page: IndexedText) -> bool:
    """Whether each part that changes is in the block that the part before it is in, or begins."""
    return all(
        any(_is_deep(_between(page, one, fit), one, fit) for one in before if _follows(page, one, fit))
        for (before, after), part in zip(pairwise(layers), parts[1:], strict=True)
        if part.old != part.new
        for fit in after
    )


def _comes_twice(layers: list[list[Candidate]], parts: Sequence[EditReading], page: IndexedText) -> bool:
    """Whether a line that comes in is among those that are left out: then it may be there already."""
    for (before, after), (one, other) in zip(pairwise(layers), pairwise(parts), strict=True):
        new = (squash_spaces(line) for part in (one, other) for line in set(part.new) - set(part.old))
        come = {said for said in new if len(said) >= _MIN_TELLING_CHARS}
        out = (_between(page, fit, next_fit) for fit in before for next_fit in after if _follows(page, fit, next_fit))
        if come and any(squash_spaces(line) in come for lines in out for line in lines):
            return True
    return False


def _is_deep(between: Sequence[str], one: Candidate, other: Candidate) -> bool:
    """Whether no line that is left out ends the block."""
    above, below = _depth(one.lines[::-1]), _depth(other.lines)
    least = above + 1 if below > above else below
    return all(_depth([line]) >= least for line in between if line.strip())


def _depth(lines: Sequence[str]) -> int:
    """How deep the first line is that is not blank."""
    return next((len(extract_indent(line).expandtabs(4)) for line in lines if line.strip()), 0)
