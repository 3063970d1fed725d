"""Where the lines lead that `@@` names: a class, a function in it, and what is in that."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from handrail.edit.patch.text_lines import TextLines

_MOST = 100
"""Places of an anchor that are looked into one by one."""


class Window(NamedTuple):
    """Lines that a hunk may be in."""

    start: int
    end: int
    anchor: int = -1
    """The line that they belong to: their first, or one before the hunk before that is still open."""


def windows(text: TextLines, anchors: Sequence[str], low: int) -> list[Window] | str:
    """The places from a line on that anchors lead to, each inside the one before if it can be, and else behind it; or
    the anchor that is not there."""
    found = [Window(low, len(text))]
    for anchor in anchors:
        inside = {at for window in found for at in _named(text, anchor, window, low)}
        places = sorted(inside or _lines_of(text, anchor, found[0].start, len(text)))
        if not places:
            return anchor
        few = len(places) <= _MOST
        ends = (text.block_end(at) if few else len(text) for at in places)
        found = [Window(max(at, low), end, at) for at, end in islice(zip(places, ends, strict=True), _MOST)]
    return found


def _named(text: TextLines, anchor: str, window: Window, low: int) -> list[int]:
    """Lines in a window that an anchor names, and lines before it whose own lines go on there."""
    behind = window.anchor + 1
    still_open = [at for at in _lines_of(text, anchor, behind, low) if text.block_end(at) > low]
    return still_open + _lines_of(text, anchor, max(behind, window.start), window.end)


def _lines_of(text: TextLines, anchor: str, low: int, high: int) -> list[int]:
    """Lines that an anchor names, one more than are looked into at most: as they are; but for white space around them;
    by how they begin."""
    alike = list(islice(text.alike(anchor, low, high), _MOST + 1))
    if alike:
        exactly = [at for at in alike if text.lines[at].rstrip() == anchor.rstrip()]
        return exactly if exactly and len(alike) <= _MOST else alike
    wanted = " ".join(anchor.split())
    begin = (at for at in text.beginning(wanted, low, high) if _begins(text.lines[at], wanted))
    return list(islice(begin, _MOST + 1))


def _begins(line: str, wanted: str) -> bool:
    """Whether a line begins with whole words."""
    found = " ".join(line.split())
    within_word = re.match(r"\w\w", found[len(wanted) - 1 : len(wanted) + 1])
    return found.startswith(wanted) and not within_word
