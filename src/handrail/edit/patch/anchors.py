"""Where the lines lead that `@@` names: a class, a function in it, and what is in that."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from handrail.edit.patch.text_lines import TextLines

_MOST = 100
"""Places of an anchor that are followed."""
_CLOSERS = ("}", ")", "]", "end")
_OPENERS = ("{", "(", "[", ":", "=>", "do", "then")


class Window(NamedTuple):
    """Lines that a hunk may be in: those that belong to its anchor, which is the first."""

    start: int
    end: int


def windows(text: TextLines, anchors: Sequence[str], low: int) -> list[Window] | str:
    """The places that anchors lead to, each behind the one before and, if it can be, inside it; or the anchor that is
    not there."""
    found = [Window(low, len(text))]
    for number, anchor in enumerate(anchors):
        inside = [at for window in found for at in _lines_of(text, anchor, window.start + (number > 0), window.end)]
        behind = inside or _lines_of(text, anchor, found[0].start, len(text))
        if not behind:
            return anchor
        found = [Window(at, _block_end(text, at)) for at in sorted(set(behind))[:_MOST]]
    return found


def _lines_of(text: TextLines, anchor: str, low: int, high: int) -> list[int]:
    """Lines that an anchor names: as they are; but for white space around them; by how they begin."""
    alike = text.alike(anchor, low, high)
    exactly = [at for at in alike if text.lines[at].rstrip() == anchor.rstrip()]
    if alike:
        return exactly or alike
    wanted = " ".join(anchor.split())
    begin = (at for at in range(low, high) if _begins(text.lines[at], wanted)) if wanted else iter(())
    return list(islice(begin, _MOST))


def _begins(line: str, wanted: str) -> bool:
    """Whether a line begins with whole words."""
    if line.lstrip()[:1] != wanted[0]:
        return False
    found = " ".join(line.split())
    within_word = re.match(r"\w\w", found[len(wanted) - 1 : len(wanted) + 1])
    return found.startswith(wanted) and not within_word


def _block_end(text: TextLines, at: int) -> int:
    """Behind the last line that belongs to one: those that are further in, and what closes them."""
    own = _indentation(text.lines[at])
    for number in range(at + 1, len(text)):
        line = text.lines[number].strip()
        if not line or _indentation(text.lines[number]) > own:
            continue
        if line.startswith(_CLOSERS) or line == "{":
            if line.endswith(_OPENERS):
                continue
            return number + 1
        return number
    return len(text)


def _indentation(line: str) -> int:
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())
