"""Where the lines lead that `@@` names: a class, a function in it, and what is in that."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from handrail.edit.patch.text_lines import TextLines

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
