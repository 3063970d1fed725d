"""The hunks of a diff: lines of two texts beside each other, with some context."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from handrail.edit.anchoring import split_at_anchors
from handrail.edit.lines import find_line_end, find_line_start
from handrail.edit.newlines import Replacement, apply_replacements

CONTEXT_LINES = 3
_MAX_MATCHER_STEPS = 50_000_000
"""Above this the matcher would take seconds, in the worst case minutes."""


class LineChange(NamedTuple):
    """Lines `a` to before `b` of the old text, which became lines `c` to before `d` of the new one."""

    a: int
    b: int
    c: int
    d: int


class DiffBlock(msgspec.Struct, frozen=True):
    """Lines of both texts, how many come before them, and which parts of them are not the same."""

    old: list[str]
    new: list[str]
    old_before: int
    new_before: int
    changed: list[LineChange]


def build_whole_block(before: str, after: str) -> DiffBlock:
    """Two texts of which nothing is known."""
    old, new = _split_lines(before), _split_lines(after)
    return DiffBlock(old, new, 0, 0, [LineChange(0, len(old), 0, len(new))])


def build_blocks(before: str, replacements: Sequence[Replacement], lines_before: int) -> Iterator[DiffBlock]:
    """What is replaced, with the lines around it; as one where these touch."""
    at = 0
    old_before = new_before = lines_before
    for start, end, parts in _together(before, replacements, CONTEXT_LINES):
        between = before.count("\n", at, start)
        old_before, new_before = old_before + between, new_before + between
        block = DiffBlock([], [], old_before, new_before, [])
        _fill(block, before, start, end, parts)
        yield block
        old_before, new_before = old_before + len(block.old), new_before + len(block.new)
        at = end


def _fill(block: DiffBlock, before: str, start: int, end: int, replacements: Sequence[Replacement]) -> None:
    """Takes the lines apart, those that nobody touches and those with what is replaced."""
    old, new = block.old, block.new
    for low, high, parts in _together(before, replacements):
        same = _split_lines(before[start:low])
        old += same
        new += same
        a, c = len(old), len(new)
        old += _split_lines(before[low:high])
        new += _split_lines(apply_replacements(before, parts, low, high))
        block.changed.append(LineChange(a, len(old), c, len(new)))
        start = high
    same = _split_lines(before[start:end])
    old += same
    new += same


def _together(
    before: str, replacements: Sequence[Replacement], context: int = 0
) -> Iterator[tuple[int, int, Sequence[Replacement]]]:
    """Where the lines with something to replace begin and end: replacements that share a line, or touch with context.

    A line is searched for its ends a few times at most, however many places are in it: it can be the whole file.
    """
    first = 0
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


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    lines = [f"{line}\n" for line in lines]
    return [*lines, f"{last}\n\\ No newline at end of file\n"] if last else lines


def render_hunks(block: DiffBlock) -> Iterator[str]:
    """The lines that are not the same, in groups, with some context."""
    old, new = block.old, block.new
    for group in _grouped(exactly for part in block.changed for exactly in _exact(old, new, part)):
        low = max(0, group[0].a - CONTEXT_LINES)
        high = min(len(old), group[-1].b + CONTEXT_LINES)
        lines = group[-1].d - group[0].c + (group[0].a - low) + (high - group[-1].b)
        old_at, new_at = block.old_before + low, block.new_before + group[0].c - (group[0].a - low)
        yield f"@@ -{_span(old_at, high - low)} +{_span(new_at, lines)} @@\n"
        at = low
        for a, b, c, d in group:
            yield from (f" {line}" for line in old[at:a])
            yield from (f"-{line}" for line in old[a:b])
            yield from (f"+{line}" for line in new[c:d])
            at = b
        yield from (f" {line}" for line in old[at:high])


def diff_lines(old: list[str], new: list[str]) -> Iterator[LineChange]:
    """What is not the same in two lists of lines."""
    return _exact(old, new, LineChange(0, len(old), 0, len(new)))


def _grouped(changed: Iterable[LineChange]) -> Iterator[list[LineChange]]:
    """Parts that are so near that their contexts touch."""
    group: list[LineChange] = []
    for part in changed:
        if group and part.a - group[-1].b > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _exact(old: list[str], new: list[str], part: LineChange) -> Iterator[LineChange]:
    """Of a part, what really is not the same."""
    a, b, c, d = part
    start = count_common_items(old[a:b], new[c:d])
    end = count_common_items(old[a + start : b][::-1], new[c + start : d][::-1])
    a, b, c, d = a + start, b - end, c + start, d - end
    if (a, c) == (b, d):
        return
    if _steps(old[a:b], new[c:d]) > _MAX_MATCHER_STEPS:
        yield from _coarse(old, new, LineChange(a, b, c, d))
    else:
        yield from _fine(old, new, LineChange(a, b, c, d))


def _fine(old: list[str], new: list[str], part: LineChange) -> Iterator[LineChange]:
    a, b, c, d = part
    if min(b - a, d - c) <= 1 and set(old[a:b]).isdisjoint(new[c:d]):
        yield part
    else:
        yield from _matched(old, new, part)


def _coarse(old: list[str], new: list[str], part: LineChange) -> Iterator[LineChange]:
    """What would take too long as one: apart at lines that both sides have once, and the matcher only while it is
    quick."""
    a, b, c, d = part
    left = _MAX_MATCHER_STEPS
    for low, high, start, end in split_at_anchors(old[a:b], new[c:d]):
        inner = LineChange(a + low, a + high, c + start, c + end)
        left -= _steps(old[inner.a : inner.b], new[inner.c : inner.d])
        yield from _fine(old, new, inner) if left >= 0 else (inner,)


def _steps(old: list[str], new: list[str]) -> int:
    """How long matching takes at worst: every equal pair is looked at once for each run of equal lines that is found.

    Of 200 lines and more the matcher begins no run with a line that makes up over a hundredth, as blank ones do.
    """
    counts = Counter(new)
    often = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    pairs = sum(count for line in old if (count := counts[line]) <= often)
    return (len(old) + pairs) * min(len(old), len(new), pairs + 1)


def count_common_items(one: Sequence[str], other: Sequence[str]) -> int:
    """With how many equal items two lists begin."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _matched(old: list[str], new: list[str], part: LineChange) -> Iterator[LineChange]:
    from difflib import SequenceMatcher  # noqa: PLC0415  costs start-up time, and reads never diff

    for tag, a, b, c, d in SequenceMatcher(None, old[part.a : part.b], new[part.c : part.d]).get_opcodes():
        if tag != "equal":
            yield LineChange(part.a + a, part.a + b, part.c + c, part.c + d)


def _span(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
