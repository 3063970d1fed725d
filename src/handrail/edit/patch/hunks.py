"""The hunks of a patch, in any format."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from handrail.edit.diff_parser import HunkRange, parse_hunk_range
from handrail.protocol.errors import ToolError

Sign = Literal[" ", "-", "+"]
Action = Literal["add", "update", "delete", "move", "copy"]
_SIGNS: dict[str, Sign] = {" ": " ", "-": "-", "+": "+"}
_BYTE_ORDER_MARK = "\ufeff"
_NO_ANCHOR = re.compile(r"[ .@…]*|-[\d, ]*\+[\d, ]*(?:@@.*)?")
"""Dots, and malformed or missing line numbers."""


class PatchLine(NamedTuple):
    sign: Sign
    text: str
    """With the carriage return that it may end with."""


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a file, with context."""

    number: int
    """In its file, from 1."""
    line: int
    """Line of the patch where it starts."""
    lines: tuple[PatchLine, ...]
    anchors: tuple[str, ...] = ()
    """Lines of the file that it comes behind, each behind the one before."""
    stated: int | None = None
    """Stated first line of the file, from 1. Without old lines: the line before."""
    at_end: bool = False
    """Whether it claims the end of the file."""
    old_open: bool = False
    """Whether its last old line has no newline."""
    new_open: bool = False
    unsigned: int | None = None
    """First line of the patch in it that has no sign."""

    @property
    def plain_lines(self) -> list[PatchLine]:
        """The lines with plain newlines. A line without a newline keeps its carriage return."""
        unended = self._unended
        return [
            PatchLine(line.sign, line.text[:-1]) if line.text.endswith("\r") and at not in unended else line
            for at, line in enumerate(self.lines)
        ]

    def endings(self, *signs: Sign) -> set[str]:
        unended = self._unended
        ended = (line for at, line in enumerate(self.lines) if line.sign in signs and at not in unended)
        return {"CRLF" if line.text.endswith("\r") else "LF" for line in ended}

    @property
    def _unended(self) -> set[int]:
        """Numbers of the lines without a newline."""
        if not (self.old_open or self.new_open):
            return set()
        last_old = max((at for at, line in enumerate(self.lines) if line.sign != "+"), default=-1)
        last_new = max((at for at, line in enumerate(self.lines) if line.sign != "-"), default=-1)
        return {at for at, is_open in ((last_old, self.old_open), (last_new, self.new_open)) if is_open}

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.plain_lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        return [text for sign, text in self.plain_lines if sign != "-"]

    @property
    def old_text(self) -> str:
        return "".join(f"{line}\n" for line in self.old)

    @property
    def new_text(self) -> str:
        return "".join(f"{line}\n" for line in self.new)


def strip_byte_order_mark(hunk: Hunk) -> Hunk:
    """Remove the byte order mark, which diffs take for a part of the first line. A text of only a mark has no lines."""
    no_old = hunk.old_open and hunk.old[-1:] == [_BYTE_ORDER_MARK]
    no_new = hunk.new_open and hunk.new[-1:] == [_BYTE_ORDER_MARK]
    removed = {" ": no_old, "-": no_old, "+": no_new}
    lines = [line for line in hunk.lines if not (line.text == _BYTE_ORDER_MARK and removed[line.sign])]
    return msgspec.structs.replace(
        hunk,
        lines=tuple(line._replace(text=line.text.removeprefix(_BYTE_ORDER_MARK)) for line in lines),
        old_open=hunk.old_open and not no_old,
        new_open=hunk.new_open and not no_new,
    )


class FilePatch(msgspec.Struct, frozen=True, kw_only=True):
    action: Action
    path: str
    """The existing file, or the name of an added one."""
    line: int
    """Line of the patch where it starts."""
    target: str | None = None
    """New path of a moved or copied file."""
    hunks: tuple[Hunk, ...] = ()
    content: str | None = None
    """All of an added file."""
    executable: bool | None = None
    """None: the patch does not say."""


def build_patch_error(line: int, problem: str) -> ToolError:
    message = f"Line {line} of the patch: {problem} Nothing was changed."
    return ToolError("INVALID_ARGUMENT", message, details={"patchLine": line})


def parse_anchor(line: str) -> list[str]:
    """Return the anchor of an `@@` line, if it has one instead of line numbers."""
    if parse_hunk_range(line):
        return []
    text = line.removeprefix("@@").rstrip().removesuffix("@@").rstrip().removeprefix(" ")
    return [] if _NO_ANCHOR.fullmatch(text.strip()) else [text]


def build_hunk(
    body: Sequence[str],
    *,
    number: int,
    line: int,
    body_line: int,
    path: str,
    anchors: tuple[str, ...],
    stated: HunkRange | None,
    at_end: bool = False,
) -> Hunk:
    """Build a hunk from its lines, and forgive lost signs.

    An empty line is an empty context line. At either edge it is ignored, unless the header counts it. A line without a
    sign is a context line.
    """
    start, end = _find_edges(body, stated)
    lines: list[PatchLine] = []
    old_open = new_open = False
    unsigned: int | None = None
    for at, text in enumerate(body[start:end], body_line + start):
        sign = _SIGNS.get(text[:1])
        if sign is not None:
            lines.append(PatchLine(sign, text[1:]))
        elif _is_no_newline_mark(text):
            last = lines[-1].sign if lines else " "
            old_open, new_open = old_open or last != "+", new_open or last != "-"
        else:
            lines.append(PatchLine(" ", text))
            unsigned = at if unsigned is None and text.strip() else unsigned
    if all(sign == " " for sign, _ in lines):
        problem = f"hunk {number} of {path} has no line that begins with - or +, so it changes nothing."
        raise build_patch_error(line, problem)
    has_old = any(sign != "+" for sign, _ in lines)
    is_shifted = start > 0 and end != find_counted_end(body, start, stated)
    return Hunk(
        number=number,
        line=line,
        lines=tuple(lines),
        anchors=anchors,
        stated=stated.old_line if stated and not is_shifted and (has_old or stated.old_count == 0) else None,
        at_end=at_end,
        old_open=old_open,
        new_open=new_open,
        unsigned=unsigned,
    )


def find_counted_end(lines: Sequence[str], at: int, stated: HunkRange | None) -> int | None:
    """Return where lines that start at one end by the stated counts. None if the lines disagree."""
    if stated is None:
        return None
    old, new = stated.old_count, stated.new_count
    while old > 0 or new > 0:
        if at == len(lines) or not is_hunk_line(lines[at]):
            return None
        sign = lines[at][:1]
        old -= sign not in {"+", "\\"}
        new -= sign not in {"-", "\\"}
        at += 1
    if old < 0 or new < 0:
        return None
    while at < len(lines) and _is_no_newline_mark(lines[at]):
        at += 1
    return at


def is_hunk_line(line: str) -> bool:
    """Whether a line has a sign, or is an empty one that has lost it."""
    return line[:1] in {"", " ", "-", "+", "\r"} or _is_no_newline_mark(line)


def _is_no_newline_mark(line: str) -> bool:
    return line.startswith("\\ ")


def _find_edges(body: Sequence[str], stated: HunkRange | None) -> tuple[int, int]:
    """Return the lines of the hunk, by the stated counts if they can be right."""
    start, end = 0, len(body)
    while start < end and not body[start].rstrip("\r"):
        start += 1
    while end > start and not body[end - 1].rstrip("\r"):
        end -= 1
    for first in (0, start):
        last = find_counted_end(body, first, stated)
        if last is not None and last >= end:
            return first, last
    return start, end
