"""A difference taken apart for the eye: by file, each line with its number on both sides."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from handrail.protocol.text import escape_control, escape_exact_line, measure_width, pad, wrap

MIN_SIDE_BY_SIDE_COLUMNS = 120
"""Columns from which before and after stand beside each other."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NUMBER = 6


class DiffLine(NamedTuple):
    """One line: the mark that it has in a difference, its numbers before and after, and its text."""

    mark: str
    old: int | None
    new: int | None
    text: str


class FileDifference(NamedTuple):
    """What becomes of one file."""

    path: str
    lines: list[DiffLine]


def parse_file_diffs(text: str) -> list[FileDifference]:
    """The files of a unified difference. Lines are counted as its hunks say, so no text can pass for a heading."""
    lines, found, at = text.rstrip("\n").split("\n"), list[FileDifference](), 0
    while at < len(lines):
        if lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            found.append(FileDifference(_path(lines[at], lines[at + 1]), []))
            at += 2
        elif (hunk := _HUNK.match(lines[at])) is not None and found:
            taken = list(_hunk(lines, at, hunk))
            found[-1].lines.extend(taken)
            at += len(taken)
        else:
            found = found or [FileDifference("", [])]
            found[-1].lines.extend([DiffLine("", None, None, lines[at])] if lines[at] else [])
            at += 1
    return [one for one in found if one.path or one.lines]


def render_rows(difference: FileDifference, width: int) -> list[str]:
    """The lines of a file in rows of so many columns; before beside after, where there is room."""
    lines = [line._replace(text=escape_control(line.text.expandtabs(8))) for line in difference.lines]
    return list(_beside(lines, width) if width >= MIN_SIDE_BY_SIDE_COLUMNS else _below(lines, width))


def _path(source: str, target: str) -> str:
    """The path that a heading names, as git writes it."""
    before, after = source[4:].rstrip("\t"), target[4:].rstrip("\t")
    name = before if after == "/dev/null" else after
    return escape_exact_line(name.replace("b/", "", 1) if name.startswith(("b/", '"b/')) else name.replace("a/", "", 1))


def _hunk(lines: list[str], start: int, heading: re.Match[str]) -> Iterator[DiffLine]:
    old, new = int(heading[1]), int(heading[3])
    old_end, new_end = old + int(heading[2] or 1), new + int(heading[4] or 1)
    yield DiffLine("@", None, None, lines[start])
    for line in lines[start + 1 :]:
        mark, text = line[:1] or " ", line[1:]
        if mark == "\\":
            yield DiffLine("", None, None, text)
            continue
        if mark not in " +-" or (old >= old_end and new >= new_end):
            return
        yield DiffLine(mark, old if mark != "+" else None, new if mark != "-" else None, text)
        old, new = old + (mark != "+"), new + (mark != "-")


def _below(lines: list[DiffLine], width: int) -> Iterator[str]:
    for line in lines:
        yield from _cell(line, line.old if line.mark == "-" else line.new, width)


def _beside(lines: list[DiffLine], width: int) -> Iterator[str]:
    half, at = (width - 3) // 2, 0
    while at < len(lines):
        if lines[at].mark not in {"+", "-"}:
            line, at = lines[at], at + 1
            if line.mark != " ":
                yield from _cell(line, None, width)
            else:
                yield from _paired(_cell(line, line.old, half), _cell(line, line.new, half), half)
            continue
        gone, come = list[DiffLine](), list[DiffLine]()
        while at < len(lines) and lines[at].mark in {"+", "-", ""}:
            (come if lines[at].mark == "+" else gone if lines[at].mark == "-" else []).append(lines[at])
            at += 1
        for one, other in zip_longest(gone, come):
            yield from _paired(
                _cell(one, one.old, half) if one else [], _cell(other, other.new, half) if other else [], half
            )


def _paired(left: list[str], right: list[str], half: int) -> Iterator[str]:
    for one, other in zip_longest(left, right, fillvalue=""):
        yield f"{pad(one, half)} │ {other}".rstrip()


def _cell(line: DiffLine, number: int | None, width: int) -> list[str]:
    """A line in so many columns, with its number; what does not fit goes on below."""
    if line.mark in {"@", ""}:
        return list(wrap(line.text, width, "  ")) or [""]
    start = f"{number if number is not None else '':>{_NUMBER - 1}} {line.mark} "
    blank = " " * measure_width(start)
    text = list(wrap(line.text, max(10, width - measure_width(start)))) or [""]
    return [f"{start if not at else blank}{row}" for at, row in enumerate(text)]
