"""Takes the lines of a hunk apart, and passes over what models get wrong where that is safe."""

from collections.abc import Sequence

import msgspec

from handrail.edit.patch.model import Hunk, Line, Sign, malformed

_SIGNS: dict[str, Sign] = {" ": " ", "-": "-", "+": "+"}


class HunkHead(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a hunk before its lines."""

    number: int
    line: int
    path: str
    anchors: tuple[str, ...] = ()
    stated: int | None = None
    behind: int | None = None
    """The line that it comes behind, if it turns out to have no old lines."""


def hunk_of(head: HunkHead, body: Sequence[str], *, at_end: bool = False) -> Hunk:
    """A hunk out of its lines. An empty line is an empty line of the file whose space was lost, and one at either edge
    is none at all; a line with no sign is one that stays, whose space was lost."""
    lines: list[Line] = []
    old_open = new_open = False
    for text in _without_empty_edges(body):
        sign = _SIGNS.get(text[:1])
        if sign is not None:
            lines.append(Line(sign, text[1:]))
        elif text.startswith("\\"):
            last = lines[-1].sign if lines else " "
            old_open, new_open = old_open or last != "+", new_open or last != "-"
        else:
            lines.append(Line(" ", text))
    if all(line.sign == " " for line in lines):
        problem = f"hunk {head.number} of {head.path} has no line that begins with - or +, so it changes nothing."
        raise malformed(head.line, problem)
    has_old = any(line.sign != "+" for line in lines)
    return Hunk(
        number=head.number,
        line=head.line,
        lines=tuple(lines),
        anchors=head.anchors,
        stated=head.stated if has_old else head.behind,
        at_end=at_end,
        old_open=old_open,
        new_open=new_open,
    )


def _without_empty_edges(body: Sequence[str]) -> Sequence[str]:
    start, end = 0, len(body)
    while start < end and not body[start].rstrip("\r"):
        start += 1
    while end > start and not body[end - 1].rstrip("\r"):
        end -= 1
    return body[start:end]
