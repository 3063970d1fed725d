"""Takes the lines of a hunk apart, and passes over what models get wrong where that is safe."""

from collections.abc import Sequence

import msgspec

from handrail.edit.patch.hunk_header import HunkRange, find_counted_end, is_no_newline_mark
from handrail.edit.patch.model import Hunk, PatchLine, Sign, build_patch_error

_SIGNS: dict[str, Sign] = {" ": " ", "-": "-", "+": "+"}


class HunkHead(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a hunk before its lines."""

    number: int
    line: int
    """Of the patch, where it begins."""
    body: int
    """Of the patch, where its lines begin."""
    path: str
    anchors: tuple[str, ...] = ()
    said: HunkRange | None = None


def build_hunk(head: HunkHead, body: Sequence[str], *, at_end: bool = False) -> Hunk:
    """A hunk out of its lines. An empty line is an empty line of the file whose space was lost, and one at either edge
    is none at all if it is not counted; a line with no sign is one that stays, whose space was lost."""
    start, end = _edges(body, head.said)
    lines: list[PatchLine] = []
    old_open = new_open = False
    unsigned: int | None = None
    for number, text in enumerate(body[start:end], head.body + start):
        sign = _SIGNS.get(text[:1])
        if sign is not None:
            lines.append(PatchLine(sign, text[1:]))
        elif is_no_newline_mark(text):
            last = lines[-1].sign if lines else " "
            old_open, new_open = old_open or last != "+", new_open or last != "-"
        else:
            lines.append(PatchLine(" ", text))
            unsigned = number if unsigned is None and text.strip() else unsigned
    if all(line.sign == " " for line in lines):
        problem = f"hunk {head.number} of {head.path} has no line that begins with - or +, so it changes nothing."
        raise build_patch_error(head.line, problem)
    return Hunk(
        number=head.number,
        line=head.line,
        lines=tuple(lines),
        anchors=head.anchors,
        stated=_stated(head.said, lines, shifted=start > 0 and end != _counted(body, start, head.said)),
        at_end=at_end,
        old_open=old_open,
        new_open=new_open,
        unsigned=unsigned,
    )


def _stated(said: HunkRange | None, lines: Sequence[PatchLine], *, shifted: bool) -> int | None:
    """The line that a hunk says it begins with; None where nobody can tell whether empty lines before it count."""
    if said is None or shifted:
        return None
    has_old = any(line.sign != "+" for line in lines)
    return said.start if has_old or said.old == 0 else None


def _edges(body: Sequence[str], said: HunkRange | None) -> tuple[int, int]:
    """Which lines are the hunk's, by the counts if they can be right."""
    start, end = 0, len(body)
    while start < end and not body[start].rstrip("\r"):
        start += 1
    while end > start and not body[end - 1].rstrip("\r"):
        end -= 1
    for first in (0, start):
        last = _counted(body, first, said)
        if last is not None and last >= end:
            return first, last
    return start, end


def _counted(body: Sequence[str], start: int, said: HunkRange | None) -> int | None:
    return None if said is None else find_counted_end(body, start, said)
