"""Lines on their way from one text to another."""

import re

from handrail.edit.diff import diff_lines
from handrail.workspace.text import decode_text

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def split_text_lines(data: bytes) -> list[str] | None:
    """The lines of a text without their ends; None of what is no text."""
    text = decode_text(data)
    if text is None:
        return None
    lines = text.text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def find_old_line(old: list[str], new: list[str], line: int) -> int | None:
    """Where a line of the new text was in the old one; None where it was not, as it is."""
    moved = 0
    for _, b, c, d in diff_lines(old, new):
        if line < c:
            break
        if line < d:
            return None
        moved = b - d
    return line + moved


def apply_diff(old: list[str], diff: str) -> list[str] | None:
    """The old text with a unified difference made; None where that is cut, or is not about this text."""
    made, at, rows = list[str](), 0, diff.split("\n")
    place = 0
    while place < len(rows):
        hunk = _HUNK.match(rows[place])
        place += 1
        if hunk is None:
            if rows[place - 1].startswith("… "):
                return None
            continue
        count = int(hunk[2] or 1)
        start = int(hunk[1]) - (1 if count else 0)
        made += old[at:start]
        at = start + count
        left, come = count, int(hunk[3] or 1)
        while left or come:
            if place >= len(rows) or rows[place][:1] not in {" ", "+", "-", "\\"}:
                return None
            mark, text = rows[place][:1], rows[place][1:]
            place += 1
            left -= mark in " -"
            come -= mark in " +"
            made += [text] if mark in " +" else []
    return [*made, *old[at:]]
