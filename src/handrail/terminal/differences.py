"""A difference taken apart for the eye: by file, each line with its number on both sides."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from handrail.edit.diff_parser import DiffLine, iterate_diff
from handrail.protocol.text import escape_control, escape_exact_line, measure_width, pad, wrap

MIN_SIDE_BY_SIDE_COLUMNS = 120
"""Columns from which before and after stand beside each other."""
_NUMBER = 6
_MARKS = {"context": " ", "added": "+", "removed": "-"}


class FileDifference(NamedTuple):
    """What becomes of one file."""

    path: str
    lines: list[DiffLine]


def parse_file_diffs(text: str) -> list[FileDifference]:
    """The files of a unified diff. Remarks before the first one belong to a file without a name."""
    found, source = [FileDifference("", [])], ""
    for line in iterate_diff(text):
        if line.kind == "source":
            source = line.text
        elif line.kind == "target":
            found.append(FileDifference(_path(source, line.text), []))
        else:
            found[-1].lines.append(line)
    return [one for one in found if one.path or one.lines]


def render_rows(difference: FileDifference, width: int) -> list[str]:
    """The lines of a file in rows of so many columns; before beside after, where there is room."""
    lines = [line._replace(text=_escape_text(line.text)) for line in difference.lines]
    return list(_beside(lines, width) if width >= MIN_SIDE_BY_SIDE_COLUMNS else _below(lines, width))


def _path(source: str, target: str) -> str:
    """The path that a heading names, as git writes it."""
    name = source if target == "/dev/null" else target
    return escape_exact_line(name.replace("b/", "", 1) if name.startswith(("b/", '"b/')) else name.replace("a/", "", 1))


def _escape_text(text: str) -> str:
    return escape_control(text.removesuffix("\n").expandtabs(8))


def _below(lines: list[DiffLine], width: int) -> Iterator[str]:
    for line in lines:
        yield from _cell(line, line.old if line.kind == "removed" else line.new, width)


def _beside(lines: list[DiffLine], width: int) -> Iterator[str]:
    half, at = (width - 3) // 2, 0
    while at < len(lines):
        if lines[at].kind not in {"added", "removed"}:
            line, at = lines[at], at + 1
            if line.kind != "context":
                yield from _cell(line, None, width)
            else:
                yield from _paired(_cell(line, line.old, half), _cell(line, line.new, half), half)
            continue
        start = at
        while at < len(lines) and lines[at].kind in {"added", "removed", "remark"}:
            at += 1
        gone = [line for line in lines[start:at] if line.kind == "removed"]
        come = [line for line in lines[start:at] if line.kind == "added"]
        for one, other in zip_longest(gone, come):
            yield from _paired(
                _cell(one, one.old, half) if one else [], _cell(other, other.new, half) if other else [], half
            )


def _paired(left: list[str], right: list[str], half: int) -> Iterator[str]:
    for one, other in zip_longest(left, right, fillvalue=""):
        yield f"{pad(one, half)} │ {other}".rstrip()


def _cell(line: DiffLine, number: int | None, width: int) -> list[str]:
    """A line in so many columns, with its number; what does not fit goes on below."""
    if line.kind not in _MARKS:
        return list(wrap(line.text, width, "  ")) or [""]
    start = f"{number if number is not None else '':>{_NUMBER - 1}} {_MARKS[line.kind]} "
    blank = " " * measure_width(start)
    text = list(wrap(line.text, max(10, width - measure_width(start)))) or [""]
    return [f"{start if not at else blank}{row}" for at, row in enumerate(text)]
