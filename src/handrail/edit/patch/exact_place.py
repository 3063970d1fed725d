"""Where the old lines of a hunk are for certain, exactly as they are."""

from collections.abc import Iterator, Sequence
from itertools import islice

from handrail.edit.matching import COUNTED
from handrail.edit.patch.anchors import Window
from handrail.edit.patch.fit import Target
from handrail.edit.patch.model import Hunk
from handrail.edit.patch.refusing import displaced, repeated


def exact_place(target: Target, hunk: Hunk, found: Sequence[Window]) -> int | None:
    """The line, from 0: where they are said to be, or nowhere else; None if they are not there as they are."""
    if hunk.at_end:
        return _at_end(target, hunk)
    said = _where_said(target, hunk, found)
    if said is not None:
        return said
    places = list(islice(_places(target, hunk, found), COUNTED + 1))
    if len(places) > 1:
        raise repeated(target, hunk, places[:COUNTED], all_of_them=len(places) <= COUNTED)
    if places and places[0] < target.low:
        raise displaced(target, hunk, places[0], places[0] + len(hunk.old))
    return places[0] if places else None


def _at_end(target: Target, hunk: Hunk) -> int | None:
    """The last lines, whatever blank ones come behind them."""
    at = len(target.lines) - len(hunk.old)
    while at >= target.low:
        if target.lines.are_at(at, hunk.old):
            return at
        at -= 1
        if target.lines.lines[at + len(hunk.old)].strip():
            break
    return None


def _where_said(target: Target, hunk: Hunk, found: Sequence[Window]) -> int | None:
    """The line that a diff states, or the one behind an anchor that nothing belongs to."""
    at = target.stated(hunk)
    if hunk.anchors:
        at = found[0].anchor + 1 if len(found) == 1 and found[0].alone else None
    return at if at is not None and at >= target.low and target.lines.are_at(at, hunk.old) else None


def _places(target: Target, hunk: Hunk, found: Sequence[Window]) -> Iterator[int]:
    """All places: in what belongs to the anchors, behind the hunk before, or, where nothing is said, in the file."""
    lines, old = target.lines, hunk.old
    if hunk.anchors:
        inside = (at for window in found for at in islice(lines.places(old, window.start, window.end), COUNTED))
        return iter(dict.fromkeys(inside))
    if hunk.stated is not None:
        return lines.places(old, target.low, len(lines))
    return (at for at in lines.places(old, 0, len(lines)) if not target.taken(at, at + len(old)))
