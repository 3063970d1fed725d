"""The `@@` line that a hunk begins with: numbers, or what it is in."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_NUMBERED = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NO_NAME = re.compile(r"[ .@…]*|-[\d, ]*\+[\d, ]*(?:@@.*)?")
"""What names nothing: dots, and numbers that were left out or are not as diffs have them."""


class HunkRange(NamedTuple):
    """Where a hunk says it begins, and how many lines it says it has."""

    start: int
    old: int
    new: int


def parse_hunk_range(line: str) -> HunkRange | None:
    """The numbers of an `@@` line."""
    found = _NUMBERED.match(line)
    return HunkRange(int(found[1]), int(found[2] or 1), int(found[4] or 1)) if found else None


def parse_anchor(line: str) -> list[str]:
    """What an `@@` line names, if anything: line numbers are none, nor is what follows them."""
    if _NUMBERED.match(line):
        return []
    text = line.removeprefix("@@").rstrip().removesuffix("@@").rstrip().removeprefix(" ")
    return [] if _NO_NAME.fullmatch(text.strip()) else [text]


def find_counted_end(lines: Sequence[str], at: int, said: HunkRange) -> int | None:
    """Where the counts say that lines end that begin at one; None if the lines say something else."""
    old, new = said.old, said.new
    while old > 0 or new > 0:
        if at == len(lines) or not is_hunk_line(lines[at]):
            return None
        sign = lines[at][:1]
        old -= sign not in {"+", "\\"}
        new -= sign not in {"-", "\\"}
        at += 1
    if old < 0 or new < 0:
        return None
    while at < len(lines) and is_no_newline_mark(lines[at]):
        at += 1
    return at


def is_no_newline_mark(line: str) -> bool:
    """Whether a line says that the one before it has no newline: any other that begins so is a line of a file."""
    return line.startswith("\\ ")


def is_hunk_line(line: str) -> bool:
    """Whether a line can be one of a hunk: it has a sign, or is an empty one that has lost it."""
    return line[:1] in {"", " ", "-", "+", "\r"} or is_no_newline_mark(line)
