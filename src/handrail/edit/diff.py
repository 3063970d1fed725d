"""Unified diffs: written, parsed, reversed."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from handrail.edit.lines import Replacement, apply_replacements, find_line_end, find_line_start
from handrail.edit.sequences import LineChange, refine_change, split_keeping_newlines

CONTEXT_LINES = 3
_MAX_DIFF_CHARS = 60_000
_MAX_DIFFED_LINES = 1_000_000
"""Lines of both texts together. Each costs memory."""
_NO_NEWLINE = "\\ No newline at end of file"
_CUT = "… "
"""Starts the last line of a truncated diff."""
_NO_FILE = "/dev/null"
_HUNK_RANGE = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_KINDS: dict[str, Literal["context", "added", "removed"]] = {" ": "context", "+": "added", "-": "removed"}
_ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


class Diff(msgspec.Struct, frozen=True):
    text: str
    added: int
    removed: int
    truncated: bool = False


NO_DIFF = Diff("", 0, 0)


def build_unified_diff(old: str | None, new: str | None, path: str) -> Diff:
    """Compare two texts as `git diff` does. None means that there is no file."""
    before, after = old or "", new or ""
    if before == after:
        return NO_DIFF
    if before.count("\n") + after.count("\n") > _MAX_DIFFED_LINES:
        return _refuse_large(after.count("\n"), before.count("\n"))
    block = _DiffBlock(0, 0)
    block.replace(before, after)
    source, target = (None if old is None else f"a/{path}"), (None if new is None else f"b/{path}")
    return _write_diff([block], source, target)


def build_edit_diff(before: str, replacements: Sequence[Replacement], path: str, *, lines_before: int = 0) -> Diff:
    """Build the diff of ordered replacements. Only the lines around them are compared.

    `before` may be a part of the text that starts behind `lines_before` whole lines.
    """
    lines = (before.count("\n", start, end) + text.count("\n") for start, end, text in replacements)
    if sum(lines) > _MAX_DIFFED_LINES:
        added = sum(text.count("\n") + 1 for _, _, text in replacements)
        return _refuse_large(added, sum(before.count("\n", start, end) + 1 for start, end, _ in replacements))
    return _write_diff(_build_blocks(before, replacements, lines_before), f"a/{path}", f"b/{path}")


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
            path = (source if target == _NO_FILE else target).partition("/")[2]
            creates = source == _NO_FILE
            hunks.append(DiffHunk(file=file, path=path, creates_file=creates, range=line.range, lines=[]))
        elif line.kind != "remark":
            hunks[-1].lines.append(line)
        else:
            is_cut = is_cut or line.text.startswith(_CUT)
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


class _DiffBlock(msgspec.Struct):
    """Neighbouring lines of both texts, with their changes."""

    old_before: int
    new_before: int
    old: list[str] = []
    new: list[str] = []
    changes: list[LineChange] = []

    def keep(self, text: str) -> None:
        lines = _split_marked(text)
        self.old += lines
        self.new += lines

    def replace(self, old: str, new: str) -> None:
        a, c = len(self.old), len(self.new)
        self.old += _split_marked(old)
        self.new += _split_marked(new)
        self.changes.append(LineChange(a, len(self.old), c, len(self.new)))


def _build_blocks(before: str, replacements: Sequence[Replacement], lines_before: int) -> Iterator[_DiffBlock]:
    """Yield the replaced lines with their context. Blocks whose context touches are one."""
    at = 0
    old_before = new_before = lines_before
    for start, end, parts in _group_by_line(before, replacements, CONTEXT_LINES):
        between = before.count("\n", at, start)
        block = _DiffBlock(old_before + between, new_before + between)
        at = start
        for low, high, inner in _group_by_line(before, parts):
            block.keep(before[at:low])
            block.replace(before[low:high], apply_replacements(before, inner, low, high))
            at = high
        block.keep(before[at:end])
        yield block
        old_before, new_before = block.old_before + len(block.old), block.new_before + len(block.new)
        at = end


def _group_by_line(
    before: str, replacements: Sequence[Replacement], context: int = 0
) -> Iterator[tuple[int, int, Sequence[Replacement]]]:
    """Group replacements that share a line, or whose context touches. Yield the span of their lines too."""
    first = 0  # a line can be the whole file: its ends are searched a few times, however many replacements it has
    while first < len(replacements):
        start = find_line_start(before, replacements[first].start, context)
        line_end = end = 0
        last = first
        while last < len(replacements):
            part = replacements[last]
            if last > first and part.start >= end:
                low = find_line_start(before, part.start, context)
                if low > end or (low == end and not context):
                    break
            if last == first or part.end >= line_end:
                line_end = find_line_end(before, part.end)
                end = find_line_end(before, line_end, context - 1)
            last += 1
        yield start, end, replacements[first:last]
        first = last


def _split_marked(text: str) -> list[str]:
    """Split into lines, and mark a missing newline at the end."""
    lines = split_keeping_newlines(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += f"\n{_NO_NEWLINE}\n"
    return lines


def _refuse_large(added: int, removed: int) -> Diff:
    return Diff(f"(more than {_MAX_DIFFED_LINES} lines: no diff)\n", added, removed, truncated=True)


def _write_diff(blocks: Iterable[_DiffBlock], source: str | None, target: str | None) -> Diff:
    """Count all hunks, and write as many as the limit allows."""
    written = [f"--- {_quote_name(source)}\n+++ {_quote_name(target)}\n"]
    length, added, removed = len(written[0]), 0, 0
    for block in blocks:
        lines = list(_render_hunks(block))
        added += sum(line.startswith("+") for line in lines)
        removed += sum(line.startswith("-") for line in lines)
        if length <= _MAX_DIFF_CHARS:
            written += lines
        length += sum(map(len, lines))
    text = "".join(written)
    if length <= _MAX_DIFF_CHARS:
        return Diff(text, added, removed)
    cut = text.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return Diff(f"{text[:cut]}{_CUT}{length - cut} more characters\n", added, removed, truncated=True)


def _render_hunks(block: _DiffBlock) -> Iterator[str]:
    old, new = block.old, block.new
    for group in _group_by_context(exact for part in block.changes for exact in refine_change(old, new, part)):
        low = max(0, group[0].a - CONTEXT_LINES)
        high = min(len(old), group[-1].b + CONTEXT_LINES)
        lines = group[-1].d - group[0].c + (group[0].a - low) + (high - group[-1].b)
        old_at, new_at = block.old_before + low, block.new_before + group[0].c - (group[0].a - low)
        yield f"@@ -{_format_range(old_at, high - low)} +{_format_range(new_at, lines)} @@\n"
        at = low
        for a, b, c, d in group:
            yield from (f" {line}" for line in old[at:a])
            yield from (f"-{line}" for line in old[a:b])
            yield from (f"+{line}" for line in new[c:d])
            at = b
        yield from (f" {line}" for line in old[at:high])


def _group_by_context(changes: Iterable[LineChange]) -> Iterator[list[LineChange]]:
    group: list[LineChange] = []
    for change in changes:
        if group and change.a - group[-1].b > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _format_range(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _quote_name(name: str | None) -> str:
    """Write a path as git does in a header: quoted if it is ambiguous."""
    if name is None:
        return _NO_FILE
    if name.isprintable() and '"' not in name and "\\" not in name:
        return f"{name}\t" if " " in name else name
    return f'"{"".join(map(_escape, name))}"'


def _escape(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    return character if character.isprintable() else "".join(f"\\{byte:03o}" for byte in character.encode())


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
        text += "" if lines and lines[0] == _NO_NEWLINE else "\n"
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
    at = _find_lines(text, lines, 0)
    return None if at is None or _find_lines(text, lines, at + 1) is not None else at


def _find_lines(text: str, lines: str, start: int) -> int | None:
    if not lines:
        return None
    while (at := text.find(lines, start)) >= 0:
        if (at == 0 or text[at - 1] == "\n") and (lines.endswith("\n") or at + len(lines) == len(text)):
            return at
        start = at + 1
    return None


def is_truncated_diff(text: str) -> bool:
    """Whether a diff of ours was too long to be kept whole."""
    return any(line.startswith(_CUT) for line in text.splitlines())
