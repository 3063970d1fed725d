"""Finds where the hunks of a unified diff end: by the counts in their headers, or by their lines if those are wrong."""

import re
from collections.abc import Sequence

from handrail.edit.patch.hunk_header import HunkRange, find_counted_end, is_hunk_line, parse_anchor, parse_hunk_range
from handrail.edit.patch.hunk_lines import HunkHead, build_hunk
from handrail.edit.patch.model import Hunk, build_patch_error
from handrail.protocol.text import quote_text

_SIGNATURE = "-- "
"""What `git format-patch` ends with."""
_NEXT = ("@@", "diff ", "Index: ", "===", "From ", "Only in ", "```")
"""What may come behind a hunk."""
_MAIL = re.compile(r"From [0-9a-f]+ ")


def is_file_header(lines: Sequence[str], at: int) -> bool:
    """Whether a line and the next name a file."""
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def is_mail(line: str) -> bool:
    """Whether a line begins a mail of `git format-patch`."""
    return _MAIL.match(line) is not None


def parse_hunks(lines: Sequence[str], at: int, first: int, path: str) -> tuple[list[Hunk], int]:
    """The hunks that begin at a line, and where what comes behind them begins."""
    hunks: list[Hunk] = []
    while True:
        start = _next_full(lines, at)
        if start == len(lines) or not lines[start].startswith("@@") or lines[start].startswith("@@@"):
            return hunks, at
        said = parse_hunk_range(lines[start])
        at = _end(lines, start + 1, said)
        if at == start + 1:
            raise build_patch_error(first + start, f"hunk {len(hunks) + 1} of {path} has no lines.")
        head = HunkHead(
            number=len(hunks) + 1,
            line=first + start,
            body=first + start + 1,
            path=path,
            anchors=tuple(parse_anchor(lines[start])),
            said=said,
        )
        hunks.append(build_hunk(head, lines[start + 1 : at]))
        _refuse_unsigned(lines, start + 1, at, first, said)


def _refuse_unsigned(lines: Sequence[str], start: int, at: int, first: int, said: HunkRange | None) -> None:
    """A line behind a hunk that lacks some, which can only be one of them without its sign."""
    if at == len(lines) or is_hunk_line(lines[at]) or lines[at].startswith(_NEXT):
        return
    old = sum(line[:1] not in {"+", "\\"} for line in lines[start:at])
    new = sum(line[:1] not in {"-", "\\"} for line in lines[start:at])
    lacks = said is not None and old < said.old and new < said.new
    if lacks or lines[at].startswith("\\"):
        problem = f"{quote_text(lines[at])} begins with none of space, - and +, as every line of a hunk does."
        raise build_patch_error(first + at, problem)


def _end(lines: Sequence[str], at: int, said: HunkRange | None) -> int:
    for start in (at, _next_full(lines, at)) if said is not None else ():
        end = find_counted_end(lines, start, said) if said is not None else None
        if end is not None and _is_over(lines, end):
            return end
    return _visible_end(lines, at)


def _next_full(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and not lines[at].strip("\r"):
        at += 1
    return at


def _is_over(lines: Sequence[str], at: int) -> bool:
    """Whether what comes next can be no line of a hunk."""
    at = _next_full(lines, at)
    if at == len(lines) or lines[at][:1] not in {" ", "-", "+"}:
        return True
    return is_file_header(lines, at) or lines[at].rstrip("\r") == _SIGNATURE


def _visible_end(lines: Sequence[str], at: int) -> int:
    """Where lines come that can be none of a hunk's. A name of a file looks like a line that goes, but not if one that
    comes and the header of a hunk follow it."""
    end = start = at
    while at < len(lines):
        line = lines[at].rstrip("\r")
        if not is_hunk_line(line):
            break
        if is_file_header(lines, at) and at + 2 < len(lines) and lines[at + 2].startswith("@@"):
            break
        if line == _SIGNATURE and at > start and _ends_mail(lines, at):
            break
        at += 1
        end = at if line else end
    return end


def _ends_mail(lines: Sequence[str], at: int) -> bool:
    """Whether behind a signature, of one line, nothing comes but another mail."""
    after = _next_full(lines, at + 2)
    return after >= len(lines) or is_mail(lines[after])
