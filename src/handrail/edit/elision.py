"""Old texts with a mark in the place of lines that are left out: `...` in both texts, for lines that stay."""

from collections.abc import Container, Sequence
from itertools import islice, pairwise

from handrail.edit.fitting import Fit
from handrail.edit.page import Page
from handrail.edit.placeholders import is_mark
from handrail.edit.reading import Reading
from handrail.edit.typography import squashed

_FAR = 400
"""Lines that a mark may stand for."""
_PLACES = 200


def elided(page: Page, reading: Reading) -> list[list[Fit]]:
    """The parts between the marks that change, each with its places; nothing where there are no marks, or a part is
    not there behind the one before it. What is in the file itself is no mark."""
    there = {squashed(line) for line in reading.old if is_mark(line)}
    there.intersection_update(page.keys)
    old, new = _segments(reading.old, there), _segments(reading.new, there)
    if len(old) < 2 or len(old) != len(new):
        return []
    parts = [
        Reading("elision", one, other, terminated=False)
        for one, other in zip(old, new, strict=True)
        if any(map(str.strip, one)) or any(map(str.strip, other))
    ]
    found = [list(islice(page.fits(part), _PLACES)) for part in parts]
    for layer in (found, found[::-1]):
        _keep_reachable(layer, page, backwards=layer is not found)
    if not all(found):
        return []
    return [_safest(fits) for part, fits in zip(parts, found, strict=True) if part.old != part.new]


def _segments(lines: Sequence[str], there: Container[str]) -> list[list[str]]:
    """The lines between the marks."""
    segments: list[list[str]] = [[]]
    for line in lines:
        if is_mark(line) and squashed(line) not in there:
            segments.append([])
        else:
            segments[-1].append(line)
    return segments


def _keep_reachable(layers: list[list[Fit]], page: Page, *, backwards: bool) -> None:
    """Of each part the places that are not far behind, or before, one of the part before it."""
    for before, after in pairwise(layers):
        after[:] = [fit for fit in after if any(_follows(page, fit, other, backwards=backwards) for other in before)]


def _follows(page: Page, fit: Fit, other: Fit, *, backwards: bool) -> bool:
    first, second = (fit, other) if backwards else (other, fit)
    return first.span.end < second.span.start and page.text.count("\n", first.span.end, second.span.start) <= _FAR


def _safest(fits: list[Fit]) -> list[Fit]:
    least = min(fit.rung for fit in fits)
    return [fit for fit in fits if fit.rung == least]
