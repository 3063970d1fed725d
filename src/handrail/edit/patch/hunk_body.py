"""Finds where the hunks of a unified diff end: by the counts in their headers, or by their lines if those are wrong."""

import re
from collections.abc import Sequence

from handrail.edit.patch.hunk_lines import HunkHead, hunk_of
from handrail.edit.patch.model import Hunk, malformed

_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_SIGNATURE = "-- "
"""What `git format-patch` ends with."""


def is_file_header(lines: Sequence[str], at: int) -> bool:
    """Whether a line and the next name a file."""
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def hunks_at(lines: Sequence[str], at: int, first: int, path: str) -> tuple[list[Hunk], int]:
    """The hunks that begin at a line, and where what comes behind them begins."""
    hunks: list[Hunk] = []
    while True:
        start = at
        while start < len(lines) and not lines[start].strip():
            start += 1
        if start == len(lines) or not lines[start].startswith("@@") or lines[start].startswith("@@@"):
            return hunks, at
        found = _HEADER.match(lines[start])
        at = _end(lines, start + 1, found)
        if at == start + 1:
            raise malformed(first + start, f"hunk {len(hunks) + 1} of {path} has no lines.")
        head = HunkHead(
            number=len(hunks) + 1,
            line=first + start,
            path=path,
            stated=int(found[1]) if found else None,
            behind=int(found[1]) if found and found[2] == "0" else None,
        )
        hunks.append(hunk_of(head, lines[start + 1 : at]))


def _end(lines: Sequence[str], at: int, header: re.Match[str] | None) -> int:
    if header is not None:
        end = _counted_end(lines, at, int(header[2] or 1), int(header[4] or 1))
        if end is not None:
            return end
    return _visible_end(lines, at)


def _counted_end(lines: Sequence[str], at: int, old: int, new: int) -> int | None:
    """Where the counts say that a hunk ends; None if its lines say something else."""
    while old > 0 or new > 0:
        sign = (lines[at][:1] or " ") if at < len(lines) else None
        if sign not in {" ", "-", "+", "\\", "\r"}:
            return None
        old -= sign not in {"+", "\\"}
        new -= sign not in {"-", "\\"}
        at += 1
    if old < 0 or new < 0:
        return None
    while at < len(lines) and lines[at].startswith("\\"):
        at += 1
    return at if _is_over(lines, at) else None


def _is_over(lines: Sequence[str], at: int) -> bool:
    """Whether what comes next can be no line of a hunk."""
    while at < len(lines) and not lines[at].strip("\r"):
        at += 1
    if at == len(lines) or lines[at][:1] not in {" ", "-", "+"}:
        return True
    return is_file_header(lines, at) or lines[at].rstrip("\r") == _SIGNATURE


def _visible_end(lines: Sequence[str], at: int) -> int:
    """Where lines come that can be none of a hunk's. A name of a file looks like a line that goes, but not if one that
    comes and the header of a hunk follow it."""
    end = start = at
    while at < len(lines):
        line = lines[at].rstrip("\r")
        if line and line[0] not in " -+\\":
            break
        if is_file_header(lines, at) and at + 2 < len(lines) and lines[at + 2].startswith("@@"):
            break
        if line == _SIGNATURE and at > start and not any(lines[later] for later in range(at + 2, len(lines))):
            break
        at += 1
        end = at if line else end
    return end
