"""Where the old lines of a hunk are for certain, exactly as they are."""

from collections.abc import Iterator, Sequence
from itertools import islice

from handrail.edit.matching import MAX_COUNTED_PLACES
from handrail.edit.patch.anchors import Window
from handrail.edit.patch.fit import PatchTarget
from handrail.edit.patch.model import Hunk
from handrail.edit.patch.refusing import build_displaced_error, build_repeated_error

_MAX_COMPARED_LINES = 2_000_000
"""Lines that counting may compare: every place costs as many as are looked for."""

_MAX_BLANK_LINES = 20
"""Blank lines at the end of a file that may come behind what is said to be its end."""


def find_exact_place(target: PatchTarget, hunk: Hunk, found: Sequence[Window]) -> int | None:
    """The line, from 0: where they are said to be, or nowhere else; None if they are not there as they are."""
    if hunk.at_end:
        return _at_end(target, hunk)
    said = _where_said(target, hunk, found)
    if said is not None:
        return said
    most = max(4, min(MAX_COUNTED_PLACES, _MAX_COMPARED_LINES // len(hunk.old)))
    places = list(islice(_places(target, hunk, found), most + 1))
    if len(places) > 1:
        raise build_repeated_error(target, hunk, places[:most], all_of_them=len(places) <= most)
    if places and places[0] < target.low:
        raise build_displaced_error(target, hunk, places[0], places[0] + len(hunk.old))
    return places[0] if places else None


def _at_end(target: PatchTarget, hunk: Hunk) -> int | None:
    """The last lines, whatever blank ones come behind them."""
    old, lines = hunk.old, target.lines
    last = len(lines) - len(old)
    for at in range(last, max(target.low, last - _MAX_BLANK_LINES) - 1, -1):
        if lines.are_at(at, old):
            return at
        if lines.lines[at + len(old) - 1].strip():
            break
    return None


def _where_said(target: PatchTarget, hunk: Hunk, found: Sequence[Window]) -> int | None:
    """The line that a diff states, or the one behind an anchor that nothing belongs to."""
    at = target.stated(hunk)
    if hunk.anchors:
        at = found[0].anchor + 1 if len(found) == 1 and found[0].alone else None
    return at if at is not None and at >= target.low and target.lines.are_at(at, hunk.old) else None


def _places(target: PatchTarget, hunk: Hunk, found: Sequence[Window]) -> Iterator[int]:
    """All places: in what belongs to the anchors, behind the hunk before, or, where nothing is said, in the file."""
    lines, old = target.lines, hunk.old
    if hunk.anchors:
        inside = (
            at for window in found for at in islice(lines.places(old, window.start, window.end), MAX_COUNTED_PLACES)
        )
        return iter(dict.fromkeys(inside))
    if hunk.stated is not None:
        return lines.places(old, target.low, len(lines))
    return (at for at in lines.places(old, 0, len(lines)) if not target.taken(at, at + len(old)))
