"""Finds where a hunk belongs."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from handrail.edit.diff import narrow_replacements
from handrail.edit.fuzzy.candidates import RefusedError
from handrail.edit.fuzzy.strategies import FuzzyMatch, find_match
from handrail.edit.lines import MAX_COUNTED_PLACES, Replacement, apply_replacements
from handrail.edit.match import match_or_refuse
from handrail.edit.patch.model import Hunk, Sign
from handrail.edit.patch.placement import (
    PatchTarget,
    PlacedHunk,
    TextLines,
    build_displaced_error,
    build_hunk_error,
    build_repeated_error,
    split_signed_parts,
    strip_blank_edges,
)
from handrail.edit.refusals import Wording
from handrail.protocol.errors import ToolError

# § [edit.patch.anchors] Where the lines lead that `@@` names: a class, a function in it, and what is in that.

_MAX_ANCHOR_PLACES = 100
"""Places of an anchor that are looked into one by one."""


class Window(NamedTuple):
    """Lines that a hunk may begin with."""

    start: int
    end: int
    anchor: int = -1
    """The line that they belong to: their first, or one before the hunk before that is still open."""
    alone: bool = False
    """Whether the anchor is a line that nothing belongs to: then they are those behind it."""


def find_anchor_windows(text: TextLines, anchors: Sequence[str], low: int) -> list[Window] | str:
    """What belongs to anchors, each inside the one before, from a line on; or the anchor that is not there."""
    found = [Window(low, len(text))]
    for anchor in anchors:
        places = sorted({at for window in found for at in _named(text, anchor, window, low)})
        if not places:
            return anchor
        if len(places) > _MAX_ANCHOR_PLACES:
            found = [Window(max(places[0], low), len(text), at) for at in places[:_MAX_ANCHOR_PLACES]]
            continue
        found = [Window(max(at, low), text.block(at).end, at, text.block(at).alone) for at in places]
    return found


def _named(text: TextLines, anchor: str, window: Window, low: int) -> list[int]:
    """Lines in a window that an anchor names, and lines before it whose own lines go on there."""
    behind = window.anchor + 1
    before = ((at, text.block(at)) for at in _lines_of(text, anchor, behind, low))
    still_open = [at for at, block in before if block.end > low and not block.alone]
    return still_open + _lines_of(text, anchor, max(behind, window.start), window.end)


def _lines_of(text: TextLines, anchor: str, low: int, high: int) -> list[int]:
    """Lines that an anchor names, one more than are looked into at most: as they are; but for white space around them;
    by how they begin."""
    alike = _between(text.alike(anchor), low, high)
    exactly = [at for at in alike if text.lines[at].rstrip() == anchor.rstrip()]
    if exactly and len(alike) <= _MAX_ANCHOR_PLACES:
        return exactly
    return alike or _between(text.beginning(anchor), low, high)


def _between(numbers: Sequence[int], low: int, high: int) -> list[int]:
    start, end = bisect_left(numbers, low), bisect_left(numbers, high)
    return list(numbers[start : min(end, start + _MAX_ANCHOR_PLACES + 1)])


# § [edit.patch.exact_place] Where the old lines of a hunk are for certain, exactly as they are.

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


# § [edit.patch.tolerant_place] Where the engine of edit finds the old lines of a hunk that are not there as they
# § are: whole lines, always.

_PART = "its old lines are only a part of lines there. A patch replaces whole lines."
_OF_HUNK = Wording(old="its old text", new="its new text", every="name its function in an @@ line")


def find_tolerant_place(target: PatchTarget, hunk: Hunk, found: Sequence[Window]) -> PlacedHunk:
    """The only place in what belongs to the anchors, or behind the hunk before; ToolError where there is none."""
    end = min(found[-1].end + len(hunk.old), len(target.lines))
    try:
        fit = _climbed(target, hunk, found[0].start, end)
    except ToolError as error:
        raise _refused(target, hunk, error) from None
    inside = any(window.start <= fit.start < window.end for window in found)
    if not inside or (hunk.at_end and target.lines.part(fit.end, len(target.lines)).strip()):
        raise build_displaced_error(target, hunk, fit.start, fit.end)
    if not hunk.anchors and hunk.stated is None:
        _refuse_twin(target, hunk, fit)
    return fit


def _refused(target: PatchTarget, hunk: Hunk, error: ToolError) -> ToolError:
    """What is said of the part of the file where the hunk was looked for, or of all of it. It may be elsewhere."""
    if error.code != "NO_MATCH":
        return build_hunk_error(target, hunk, error)
    exactly = next(target.lines.places(hunk.old, 0, len(target.lines)), None)
    if exactly is not None:
        return build_displaced_error(target, hunk, exactly, exactly + len(hunk.old))
    try:
        fit = _climbed(target, hunk, 0, len(target.lines))
    except ToolError as said:
        return build_hunk_error(target, hunk, said)
    return build_displaced_error(target, hunk, fit.start, fit.end)


def _climbed(target: PatchTarget, hunk: Hunk, start: int, end: int) -> PlacedHunk:
    text, readable = target.part(start, end)
    old, new = hunk.old_text, hunk.new_text
    found = match_or_refuse(text, old, new, target.path, every=False, readable=readable, wording=_OF_HUNK)
    return _whole(target, hunk, found, start)


def _whole(target: PatchTarget, hunk: Hunk, ladder: FuzzyMatch, first: int) -> PlacedHunk:
    """What the ladder found in a text that begins with a line, in whole lines: those that stay keep their endings."""
    lines, [place] = target.lines, ladder.places
    shift = lines.starts[first]
    start, end = lines.line_at(place.span.start + shift), lines.line_at(place.span.end + shift)
    if lines.starts[start] != place.span.start + shift or lines.starts[end] - place.span.end - shift > 1:
        raise ToolError("NO_MATCH", _PART)
    moved = [Replacement(low + shift, high + shift, text) for low, high, text in place.replacements]
    made = apply_replacements(lines.text, moved, lines.starts[start], lines.starts[end])
    return PlacedHunk(start, end, ladder.strategy, tuple(_parts(lines, hunk, start, end, made)))


def _parts(lines: TextLines, hunk: Hunk, start: int, end: int, made: str) -> Iterator[Replacement]:
    """Lines that become others, as what changes in them: by the signs of the hunk, if the ladder went by them."""
    signs: list[Sign] = [line.sign for line in hunk.lines]
    texts = [line.text for line in hunk.lines]
    old, new = lines.lines[start:end], made.split("\n")[:-1]
    for each in strip_blank_edges(signs, texts, len(old)):
        parts = split_signed_parts(each, old, new)
        if parts is not None:
            starts = lines.starts[start : end + 1]
            return (Replacement(starts[a], starts[b], "".join(f"{line}\n" for line in to)) for a, b, to in parts)
    return narrow_replacements(lines.text, [Replacement(lines.starts[start], lines.starts[end], made)])


def _refuse_twin(target: PatchTarget, hunk: Hunk, fit: PlacedHunk) -> None:
    """AMBIGUOUS_MATCH where the lines are as much alike before the hunk before: hunks may be out of order."""
    if not target.low:
        return
    try:
        found = find_match(target.lines.part(0, target.low), hunk.old_text, hunk.new_text)
    except RefusedError:
        return
    if found is None or found.strategy != fit.strategy:
        return
    at = target.lines.line_at
    before = [(at(place.span.start), at(place.span.end)) for place in found.places]
    twins = [start for start, end in before if not target.taken(start, end)]
    if twins:
        raise build_repeated_error(target, hunk, [*twins, fit.start], all_of_them=found.all_of_them)
