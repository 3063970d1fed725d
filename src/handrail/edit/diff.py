"""The differences of two texts, written as a unified diff."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

from handrail.edit.lines import (
    Replacement,
    apply_replacements,
    count_common_end,
    count_common_start,
    find_line_end,
    find_line_start,
    split_keeping_newlines,
)

CONTEXT_LINES = 3
_MAX_DIFF_CHARS = 60_000
_MAX_DIFFED_LINES = 1_000_000
"""Lines of both texts together. Each costs memory."""
NO_NEWLINE = "\\ No newline at end of file"
TRUNCATION_MARK = "… "
"""Starts the last line of a truncated diff."""
NO_FILE = "/dev/null"
_MAX_MATCHER_STEPS = 50_000_000
"""More steps take seconds, in the worst case minutes."""


class Diff(msgspec.Struct, frozen=True):
    text: str
    added: int
    removed: int
    truncated: bool = False


NO_DIFF = Diff("", 0, 0)


class LineChange(NamedTuple):
    """Items `a` to before `b` of the old sequence become items `c` to before `d` of the new one."""

    a: int
    b: int
    c: int
    d: int


def is_truncated_diff(text: str) -> bool:
    """Whether a diff of ours was too long to be kept whole."""
    return any(line.startswith(TRUNCATION_MARK) for line in text.splitlines())


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
    source, target = f"a/{path}", f"b/{path}"
    enough = _count_enough(before, replacements)
    if enough < len(replacements):
        diff = _write_diff(_build_blocks(before, replacements[:enough], lines_before), source, target)
        if diff.truncated:
            added, removed = _count_lines(before, replacements[enough:])
            text = f"{diff.text.rpartition(TRUNCATION_MARK)[0]}{TRUNCATION_MARK}more changes follow\n"
            return Diff(text, diff.added + added, diff.removed + removed, truncated=True)
    return _write_diff(_build_blocks(before, replacements, lines_before), source, target)


def _count_enough(before: str, replacements: Sequence[Replacement]) -> int:
    """Return how many replacements fill a diff. The next one is in another line."""
    size = line_end = 0
    for number, (start, end, text) in enumerate(replacements):
        if start > line_end or not number:
            if size > _MAX_DIFF_CHARS:
                return number
            line_start, line_end = find_line_start(before, start), find_line_end(before, end)
            size += line_end - line_start
        elif end > line_end:
            line_end = find_line_end(before, end)
        size += len(text)
    return len(replacements)


def _count_lines(before: str, replacements: Sequence[Replacement]) -> tuple[int, int]:
    """Count the lines that replacements add and remove, without those that they share with the one before."""
    added = removed = previous = 0
    for start, end, text in replacements:
        is_apart = before.find("\n", previous, start) >= 0 or not previous
        old = before[start:end]
        added += text.count("\n") + (is_apart and not text.endswith("\n"))
        removed += old.count("\n") + (is_apart and not old.endswith("\n"))
        previous = end
    return added, removed


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
        lines[-1] += f"\n{NO_NEWLINE}\n"
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
    return Diff(f"{text[:cut]}{TRUNCATION_MARK}{length - cut} more characters\n", added, removed, truncated=True)


def _render_hunks(block: _DiffBlock) -> Iterator[str]:
    old, new = block.old, block.new
    for group in _group_by_context(exact for part in block.changes for exact in _refine_change(old, new, part)):
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
    return str(start + 1) if count == 1 else f"{start + bool(count)},{count}"


def _quote_name(name: str | None) -> str:
    """Write a path as git does in a header: quoted if it is ambiguous."""
    if name is None:
        return NO_FILE
    if name.isprintable() and '"' not in name and "\\" not in name:
        return f"{name}\t" if " " in name else name
    return f'"{"".join(map(_escape, name))}"'


def _escape(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    return character if character.isprintable() else "".join(f"\\{byte:03o}" for byte in character.encode())


# Sequences of lines or words, compared in bounded time


def diff_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[LineChange]:
    """Compare two lists of lines. Very long ones are compared between lines that both have once."""
    return _refine_change(old, new, LineChange(0, len(old), 0, len(new)))


def _refine_change(old: Sequence[str], new: Sequence[str], part: LineChange) -> Iterator[LineChange]:
    """Yield the changes within a part that is known to differ."""
    change = _trim_common(old, new, part)
    if change is None:
        return
    a, b, c, d = change
    left = _MAX_MATCHER_STEPS
    if _count_steps(old[a:b], new[c:d]) <= left:
        yield from _match(old, new, change)
        return
    for low, high, start, end in _split_at_anchors(old[a:b], new[c:d]):
        inner = LineChange(a + low, a + high, c + start, c + end)
        left -= _count_steps(old[inner.a : inner.b], new[inner.c : inner.d])
        yield from _match(old, new, inner) if left >= 0 else (inner,)


def diff_sequences(one: Sequence[str], other: Sequence[str], max_steps: int = 1_000_000) -> list[LineChange]:
    """Compare two sequences. Above `max_steps`, everything between their common ends counts as changed."""
    change = _trim_common(one, other, LineChange(0, len(one), 0, len(other)))
    if change is None:
        return []
    a, b, c, d = change
    if a == b or c == d or _count_steps(one[a:b], other[c:d], autojunk=False) > max_steps:
        return [change]
    return list(_match(one, other, change, autojunk=False))


def pair_equal_items(one: Sequence[str], other: Sequence[str], max_steps: int = 1_000_000) -> list[tuple[int, int]]:
    """Return the pairs of items that `diff_sequences` leaves unchanged."""
    return list(pair_unchanged(len(one), len(other), diff_sequences(one, other, max_steps)))


def pair_unchanged(old_count: int, new_count: int, changes: Iterable[LineChange]) -> Iterator[tuple[int, int]]:
    i = k = 0
    for a, b, c, d in (*changes, LineChange(old_count, old_count, new_count, new_count)):
        yield from zip(range(i, a), range(k, c), strict=True)
        i, k = b, d


def narrow_replacements(text: str, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
    """Cut the lines out of replacements that they leave unchanged, so that these keep their own line endings."""
    for start, end, new in replacements:
        old_lines, new_lines = split_keeping_newlines(text[start:end]), split_keeping_newlines(new)
        starts = list(accumulate(map(len, old_lines), initial=start))
        for a, b, c, d in diff_lines(old_lines, new_lines):
            yield Replacement(starts[a], starts[b], "".join(new_lines[c:d]))


def _split_at_anchors(old: Sequence[str], new: Sequence[str]) -> Iterator[LineChange]:
    """Yield the parts between lines that each list has once, in the same order."""
    counts, new_counts = Counter(old), Counter(new)
    places = {line: number for number, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(number, places[line]) for number, line in enumerate(old) if counts[line] == 1 and line in places]
    for (a, c), (b, d) in pairwise(((-1, -1), *_select_longest_increasing(pairs), (len(old), len(new)))):
        if (a + 1, c + 1) != (b, d):
            yield LineChange(a + 1, b, c + 1, d)


def _trim_common(old: Sequence[str], new: Sequence[str], part: LineChange) -> LineChange | None:
    """Cut off the items that both start and end with. None if nothing is left."""
    a, b, c, d = part
    head = count_common_start(old[a:b], new[c:d])
    tail = count_common_end(old[a + head : b], new[c + head : d])
    change = LineChange(a + head, b - tail, c + head, d - tail)
    return None if change.a == change.b and change.c == change.d else change


def _match(old: Sequence[str], new: Sequence[str], part: LineChange, *, autojunk: bool = True) -> Iterator[LineChange]:
    a, b, c, d = part
    if min(b - a, d - c) <= 1 and set(old[a:b]).isdisjoint(new[c:d]):
        yield part
        return
    from difflib import SequenceMatcher  # noqa: PLC0415  costs start-up time, and most edits change one line

    for tag, i, j, k, m in SequenceMatcher(None, old[a:b], new[c:d], autojunk=autojunk).get_opcodes():
        if tag != "equal":
            yield LineChange(a + i, a + j, c + k, c + m)


def _count_steps(old: Sequence[str], new: Sequence[str], *, autojunk: bool = True) -> int:
    """Return the steps of the matcher at worst: it sees every equal pair once for each run of equal items.

    With `autojunk` no run starts with an item that makes up over 1 % of 200 or more, such as a blank line.
    """
    counts = Counter(new)
    most = len(new) // 100 + 1 if autojunk and len(new) >= 200 else len(new)
    pairs = sum(count for item in old if (count := counts[item]) <= most)
    return (len(old) + pairs) * min(len(old), len(new), pairs + 1)


def _select_longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest selection of pairs, ordered by their first number, whose second number increases too."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else -1)
    chain: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]
