"""Line differences in bounded time: hunks and unified text."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

from handrail.edit.lines import Replacement, apply_replacements, find_line_end, find_line_start

# § [edit.anchoring] Takes two long lists of lines apart at the lines that both have once: quick, whatever they are.


def split_at_anchors(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Lines `a` to before `b` of the old list and `c` to before `d` of the new one, between lines that are the same."""
    pairs = _in_order([(a, c) for a, c in _common_once(old, new)])
    for (a, c), (b, d) in pairwise(((-1, -1), *pairs, (len(old), len(new)))):
        if (a + 1, c + 1) != (b, d):
            yield a + 1, b, c + 1, d


def _common_once(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where lines are that each list has once."""
    counts, places = Counter(old), Counter(new)
    at = {line: number for number, line in enumerate(new) if places[line] == 1}
    return ((number, at[line]) for number, line in enumerate(old) if counts[line] == 1 and line in at)


def _in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """As many of the pairs, which are in the order of the first list, as are in the order of the second one too."""
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


# § [edit.hunks] The hunks of a diff: lines of two texts beside each other, with some context.

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


# § [edit.line_parts] A replacement in parts: the lines of it that stay as they are can keep their own line endings.


def narrow_replacements(text: str, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
    """The replacements without the lines that they leave as they are."""
    for start, end, new in replacements:
        old_lines, new_lines = _lines(text[start:end]), _lines(new)
        starts = list(accumulate(map(len, old_lines), initial=start))
        for a, b, c, d in diff_lines(old_lines, new_lines):
            yield Replacement(starts[a], starts[b], "".join(new_lines[c:d]))


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    lines = [f"{line}\n" for line in lines]
    return [*lines, last] if last else lines


# § [edit.diff] Unified diffs in bounded time, whatever the two texts are.

_MAX_DIFF_CHARS = 60_000
_MAX_DIFFED_LINES = 1_000_000
"""Lines of both texts together that are taken apart; each of them costs memory."""


class Diff(msgspec.Struct, frozen=True):
    """The text of a diff and what it counts."""

    text: str
    added: int
    removed: int
    truncated: bool = False


def build_unified_diff(old: str | None, new: str | None, path: str) -> Diff:
    """What changes from one text to the other, as `git diff` would show it; None where there is no file."""
    before, after = old or "", new or ""
    if before == after:
        return Diff("", 0, 0)
    if before.count("\n") + after.count("\n") > _MAX_DIFFED_LINES:
        note = f"(more than {_MAX_DIFFED_LINES} lines: no diff)\n"
        return Diff(note, after.count("\n"), before.count("\n"), truncated=True)
    names = ("/dev/null" if old is None else _name(f"a/{path}"), "/dev/null" if new is None else _name(f"b/{path}"))
    return _gathered([build_whole_block(before, after)], *names)


def build_edit_diff(before: str, replacements: Sequence[Replacement], path: str, *, lines_before: int = 0) -> Diff:
    """The same where it is known what is replaced: only the lines around that are looked at.

    `before` may be a part of a text, of whole lines, with so many `lines_before` it.
    """
    lines = (before.count("\n", start, end) + text.count("\n") for start, end, text in replacements)
    if sum(lines) > _MAX_DIFFED_LINES:
        return Diff(
            f"(more than {_MAX_DIFFED_LINES} lines: no diff)\n", *_counted(before, replacements), truncated=True
        )
    return _gathered(build_blocks(before, replacements, lines_before), _name(f"a/{path}"), _name(f"b/{path}"))


def _counted(before: str, replacements: Sequence[Replacement]) -> tuple[int, int]:
    """Lines that come and that go, at the most."""
    added = sum(text.count("\n") + 1 for _, _, text in replacements)
    return added, sum(before.count("\n", start, end) + 1 for start, end, _ in replacements)


def _gathered(parts: Iterable[DiffBlock], source: str, target: str) -> Diff:
    """All hunks are counted, and as many kept as are shown."""
    kept = [f"--- {source}\n+++ {target}\n"]
    length, added, removed = len(kept[0]), 0, 0
    for part in parts:
        lines = list(render_hunks(part))
        added += sum(line.startswith("+") for line in lines)
        removed += sum(line.startswith("-") for line in lines)
        if length <= _MAX_DIFF_CHARS:
            kept += lines
        length += sum(map(len, lines))
    text = "".join(kept)
    if length <= _MAX_DIFF_CHARS:
        return Diff(text, added, removed)
    cut = text.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return Diff(f"{text[:cut]}… {length - cut} more characters\n", added, removed, truncated=True)


def _name(path: str) -> str:
    """A path as git writes it in a header: quoted where it could be taken for something else."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return f"{path}\t" if " " in path else path
    return f'"{"".join(_quoted(character) for character in path)}"'


def _quoted(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    return character if character.isprintable() else "".join(f"\\{byte:03o}" for byte in character.encode())


# § [edit.ladder.sequences] What two sequences have in common, in bounded time.


class SequenceChange(NamedTuple):
    """Items `a` to before `b` of one sequence, which are `c` to before `d` of the other."""

    a: int
    b: int
    c: int
    d: int


def diff_sequences(one: Sequence[str], other: Sequence[str], most: int = 1_000_000) -> list[SequenceChange]:
    """What is not the same. Where finding it would take more than so many steps, all between what both begin and end
    with is taken for changed."""
    head = count_common_items(one, other)
    tail = count_common_items(one[head:][::-1], other[head:][::-1])
    a, b, c, d = head, len(one) - tail, head, len(other) - tail
    if (a, c) == (b, d):
        return []
    if a == b or c == d or _count_steps(one[a:b], other[c:d]) > most:
        return [SequenceChange(a, b, c, d)]
    codes = SequenceMatcher(None, one[a:b], other[c:d], autojunk=False).get_opcodes()
    return [SequenceChange(a + i, a + j, c + k, c + m) for tag, i, j, k, m in codes if tag != "equal"]


def pair_equal_items(one: Sequence[str], other: Sequence[str], most: int = 1_000_000) -> list[tuple[int, int]]:
    """The pairs of items that are the same."""
    pairs: list[tuple[int, int]] = []
    i = k = 0
    for a, b, c, d in (*diff_sequences(one, other, most), SequenceChange(len(one), len(one), len(other), len(other))):
        pairs += zip(range(i, a), range(k, c), strict=True)
        i, k = b, d
    return pairs


def _count_steps(one: Sequence[str], other: Sequence[str]) -> int:
    """How long matching takes at worst: every equal pair is looked at once for each run of equal items."""
    counts = Counter(other)
    pairs = sum(counts[item] for item in one)
    return (len(one) + pairs) * min(len(one), len(other), pairs + 1)
