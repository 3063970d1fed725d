"""Unified diffs as the pieces that an editor shows: for every hunk the lines before and after, and where they are."""

import re
from collections import deque
from collections.abc import Iterator

import msgspec

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_NOWHERE = "/dev/null"
_NO_NEWLINE = "\\ No newline"
_SIGNS = {" ", "-", "+"}


class Piece(msgspec.Struct, frozen=True):
    """One place in one file."""

    path: str
    """As results name it."""
    line: int
    """Where it begins now; 0 in a file that is gone."""
    old: str | None
    """None where there was no file."""
    new: str


def pieces_of(diff: str) -> Iterator[Piece]:
    """The hunks of a diff that handrail made, in order. What is no hunk, such as a remark, is passed over; of one that
    was cut off, as much as there is."""
    lines = deque(diff.split("\n"))
    source = target = ""
    while lines:
        line = lines.popleft()
        if line.startswith("--- ") and lines:
            source, target = _name(line), _name(lines.popleft())
        elif found := _HUNK.match(line):
            old, new = _sides(lines, _count(found[1]), _count(found[3]))
            path = source if target == _NOWHERE else target
            yield Piece(path.partition("/")[2], int(found[2]), None if source == _NOWHERE else old, new)


def _sides(lines: deque[str], old: int, new: int) -> tuple[str, str]:
    """The text before and after, by as many lines as the hunk says it has: what they hold may look like anything."""
    before: list[str] = []
    after: list[str] = []
    while lines and (len(before) < old or len(after) < new) and lines[0][:1] in _SIGNS:
        line = lines.popleft()
        sign, text = line[:1], f"{line[1:]}\n"
        if lines and lines[0].startswith(_NO_NEWLINE):
            text = text[:-1]
            lines.popleft()
        before += [text] if sign in " -" else []
        after += [text] if sign in " +" else []
    return "".join(before), "".join(after)


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
