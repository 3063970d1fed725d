"""Parses unified diffs."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

import msgspec

from handrail.edit.diff import NO_FILE, NO_NEWLINE, TRUNCATION_MARK
from handrail.edit.lines import find_places, split_keeping_newlines

_HUNK_RANGE = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_KINDS: dict[str, Literal["context", "added", "removed"]] = {" ": "context", "+": "added", "-": "removed"}
_ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


class HunkRange(NamedTuple):
    """The lines that an `@@` line states."""

    old_line: int
    """First old line, from 1. Without old lines: the line before."""
    old_count: int
    new_line: int
    new_count: int


class DiffLine(NamedTuple):
    """A line of a diff, with its numbers in the old and the new text."""

    kind: Literal["source", "target", "hunk", "context", "added", "removed", "remark"]
    """A header is two lines: its source and its target."""
    text: str
    """A line of a file without its sign, with the newline that it may have. A header's name as it is written."""
    old: int | None = None
    new: int | None = None
    range: HunkRange | None = None
    """Of a `hunk` line."""


class DiffHunk(msgspec.Struct, frozen=True, kw_only=True):
    """A hunk of a diff that `build_unified_diff` or `build_edit_diff` made."""

    file: int
    """Number of its file in the diff, from 1. A path that is deleted and created again is two files."""
    path: str
    creates_file: bool
    range: HunkRange
    lines: list[DiffLine]

    @property
    def old(self) -> list[str]:
        return [line.text for line in self.lines if line.kind != "added"]

    @property
    def new(self) -> list[str]:
        return [line.text for line in self.lines if line.kind != "removed"]

    @property
    def old_start(self) -> int:
        """First old line, from 0."""
        return self.range.old_line - any(line.kind != "added" for line in self.lines)

    @property
    def unchanged(self) -> int:
        """Number of lines before the first change."""
        return next((at for at, line in enumerate(self.lines) if line.kind != "context"), 0)


def iterate_diff(diff: str) -> Iterator[DiffLine]:
    """Yield the lines of a diff. They are counted as its hunks state, so no line of a file passes for a header."""
    lines = deque(diff.rstrip("\n").split("\n"))
    has_header = False
    while lines:
        line = lines.popleft()
        if line.startswith("--- ") and lines and lines[0].startswith("+++ "):
            yield DiffLine("source", line[4:].rstrip("\t"))
            yield DiffLine("target", lines.popleft()[4:].rstrip("\t"))
            has_header = True
        elif has_header and (stated := parse_hunk_range(line)):
            yield DiffLine("hunk", line, range=stated)
            yield from _number_lines(lines, stated)
        elif line:
            yield DiffLine("remark", line)


def parse_diff(diff: str) -> tuple[list[DiffHunk], bool]:
    """Parse our own diffs, also of several files. The flag is False if the diff is truncated."""
    hunks: list[DiffHunk] = []
    source = target = ""
    file, is_cut = 0, False
    for line in iterate_diff(diff):
        if line.kind == "source":
            source, file = _unquote_header(line.text), file + 1
        elif line.kind == "target":
            target = _unquote_header(line.text)
        elif line.range:
            path = (source if target == NO_FILE else target).partition("/")[2]
            creates = source == NO_FILE
            hunks.append(DiffHunk(file=file, path=path, creates_file=creates, range=line.range, lines=[]))
        elif line.kind != "remark":
            hunks[-1].lines.append(line)
        else:
            is_cut = is_cut or line.text.startswith(TRUNCATION_MARK)
    whole = all((len(hunk.old), len(hunk.new)) == (hunk.range.old_count, hunk.range.new_count) for hunk in hunks)
    return hunks, whole and not is_cut


def parse_hunk_range(line: str) -> HunkRange | None:
    found = _HUNK_RANGE.match(line)
    return HunkRange(int(found[1]), int(found[2] or 1), int(found[3]), int(found[4] or 1)) if found else None


class ReversedText(NamedTuple):
    text: str
    done: int
    """Hunks that were reversed."""
    left: int


def reverse_hunks(diff: str, before: str, text: str) -> ReversedText | None:
    """Reverse the hunks of a diff of `before` in a text that has changed since.

    A hunk is reversed if its new lines, with their context, are in the text once and were in the diff's result once.
    None if the diff is truncated or of another text.
    """
    hunks, complete = parse_diff(diff)
    after = _apply_hunks(hunks, before) if complete else None
    if not hunks or after is None:
        return None
    done = 0
    for hunk in hunks:
        old, new = "".join(hunk.old), "".join(hunk.new)
        at = _find_only(text, new)
        if at is None or _find_only(after, new) is None:
            continue
        if old and not old.endswith("\n") and at + len(new) != len(text):
            continue  # lines without a newline can only be put at the end
        text = f"{text[:at]}{old}{text[at + len(new) :]}"
        done += 1
    return ReversedText(text, done, len(hunks) - done)


def unquote_name(quoted: str) -> bytes:
    """Undo the quoting of a path in a diff header. Git writes escapes as C does, bytes as octal numbers."""
    return _ESCAPE.sub(_unescape, quoted.encode("utf-8", "surrogatepass"))


def _unquote_header(name: str) -> str:
    return unquote_name(name[1:-1]).decode(errors="replace") if name.startswith('"') else name


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes((int(code, 8) & 255 if len(code) == 3 else _ESCAPES.get(code, code[0]),))


def _number_lines(lines: deque[str], stated: HunkRange) -> Iterator[DiffLine]:
    """Take the lines of a hunk, as many as its header counts, and the remarks between and behind them."""
    old, new = stated.old_line, stated.new_line
    old_end, new_end = old + stated.old_count, new + stated.new_count
    while lines:
        sign = lines[0][:1] or " "
        if sign == "\\":
            yield DiffLine("remark", lines.popleft()[1:])
            continue
        if sign not in _KINDS or (old >= old_end and new >= new_end):
            return
        text = lines.popleft()[1:]
        text += "" if lines and lines[0] == NO_NEWLINE else "\n"
        yield DiffLine(_KINDS[sign], text, None if sign == "+" else old, None if sign == "-" else new)
        old, new = old + (sign != "+"), new + (sign != "-")


def _apply_hunks(hunks: Sequence[DiffHunk], before: str) -> str | None:
    """Apply hunks at their stated lines. None if the text does not have their old lines there."""
    lines = split_keeping_newlines(before)
    result: list[str] = []
    at = 0
    for hunk in hunks:
        start = hunk.old_start
        if lines[start : start + len(hunk.old)] != hunk.old:
            return None
        result += (*lines[at:start], *hunk.new)
        at = start + len(hunk.old)
    return "".join((*result, *lines[at:]))


def _find_only(text: str, lines: str) -> int | None:
    """Return where whole lines are in a text, if they are there once."""
    whole = (
        at
        for at, end in find_places(text, lines)
        if (at == 0 or text[at - 1] == "\n") and (lines.endswith("\n") or end == len(text))
    )
    found = list(islice(whole, 2)) if lines else []
    return found[0] if len(found) == 1 else None
