"""Unified diffs as the pieces that an editor shows: for every file the lines before and after, and where they are."""

import re
from collections import deque
from collections.abc import Iterator
from itertools import groupby, pairwise

import msgspec
from msgspec.structs import replace

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_NOWHERE = "/dev/null"
_NO_NEWLINE = "\\ No newline"
_SIGNS = {" ", "-", "+"}
_LEFT_OUT = "⋯ {} lines ⋯\n"


class DiffSegment(msgspec.Struct, frozen=True):
    """One place in one file, or all places of it, one after the other."""

    path: str
    """As results name it."""
    line: int
    """The first line that is another one now; 0 in a file that is gone."""
    old: str | None
    """None where there was no file."""
    new: str
    begin: int
    """The line that `new` begins with."""
    file: int
    """Which file of the diff it is, from 1 on. One path may be two of them: it went, and came again."""


def parse_diff_files(diff: str) -> Iterator[DiffSegment]:
    """The files of a diff that handrail made, in order, each with all its hunks: some editors show of a call only the
    first difference, and nobody should take a part of a change for all of it. Where lines are left out between two
    hunks a line says how many, the same before and after."""
    for _, hunks in groupby(parse_diff_hunks(diff), lambda hunk: hunk.file):
        yield _joined(list(hunks))


def parse_diff_hunks(diff: str) -> Iterator[DiffSegment]:
    """The hunks one by one. What is none, such as a remark, is passed over; of one that was cut off, as much as there
    is."""
    lines = deque(diff.split("\n"))
    source = target = ""
    file = 0
    while lines:
        line = lines.popleft()
        if line.startswith("--- ") and lines:
            source, target, file = _name(line), _name(lines.popleft()), file + 1
        elif found := _HUNK.match(line):
            old, new, same = _sides(lines, _count(found[1]), _count(found[3]))
            path, begin = source if target == _NOWHERE else target, int(found[2])
            changed = min(begin + same, begin + max(0, new.count("\n") - 1))
            yield DiffSegment(path.partition("/")[2], changed, None if source == _NOWHERE else old, new, begin, file)


def _joined(hunks: list[DiffSegment]) -> DiffSegment:
    first = hunks[0]
    old, new = first.old or "", first.new
    for before, hunk in pairwise(hunks):
        gap = _LEFT_OUT.format(hunk.begin - before.begin - before.new.count("\n"))
        old, new = f"{old}{gap}{hunk.old}", f"{new}{gap}{hunk.new}"
    return replace(first, old=None if first.old is None else old, new=new)


def _sides(lines: deque[str], old: int, new: int) -> tuple[str, str, int]:
    """The text before and after, by as many lines as the hunk says it has: what they hold may look like anything. And
    how many lines at its beginning are the same."""
    before: list[str] = []
    after: list[str] = []
    same = None
    while lines and (len(before) < old or len(after) < new) and lines[0][:1] in _SIGNS:
        line = lines.popleft()
        sign, text = line[:1], f"{line[1:]}\n"
        if lines and lines[0].startswith(_NO_NEWLINE):
            text = text[:-1]
            lines.popleft()
        same = len(after) if same is None and sign != " " else same
        before += [text] if sign in " -" else []
        after += [text] if sign in " +" else []
    return "".join(before), "".join(after), same or 0


def _count(spelled: str | None) -> int:
    return 1 if spelled is None else int(spelled)


def _name(header: str) -> str:
    """The path in a header line, with its `a/` or `b/`."""
    name = header[4:].rstrip("\t")
    if not name.startswith('"'):
        return name
    inner = name[1:-1].encode()
    return _ESCAPE.sub(lambda found: _unescaped(found[1]), inner).decode(errors="replace")


def _unescaped(spelled: bytes) -> bytes:
    return bytes([int(spelled, 8) & 0xFF]) if len(spelled) == 3 else spelled
