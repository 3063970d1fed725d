"""Compares sequences of lines or words in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from handrail.edit.lines import Replacement

_MAX_MATCHER_STEPS = 50_000_000
"""More steps take seconds, in the worst case minutes."""


class LineChange(NamedTuple):
    """Items `a` to before `b` of the old sequence become items `c` to before `d` of the new one."""

    a: int
    b: int
    c: int
    d: int


def diff_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[LineChange]:
    """Compare two lists of lines. Very long ones are compared between lines that both have once."""
    return refine_change(old, new, LineChange(0, len(old), 0, len(new)))


def refine_change(old: Sequence[str], new: Sequence[str], part: LineChange) -> Iterator[LineChange]:
    """Yield the changes within a part that is known to differ."""
    change = _trim_common(old, new, part)
    if change is None:
        return
    a, b, c, d = change
    left = _MAX_MATCHER_STEPS
    if _count_steps(old[a:b], new[c:d]) <= left:
        yield from _match(old, new, change)
        return
    for low, high, start, end in split_at_anchors(old[a:b], new[c:d]):
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


def split_keeping_newlines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    lines = [f"{line}\n" for line in lines]
    return [*lines, last] if last else lines


def split_at_anchors(old: Sequence[str], new: Sequence[str]) -> Iterator[LineChange]:
    """Yield the parts between lines that each list has once, in the same order."""
    pairs = _select_longest_increasing(list(_pair_unique_lines(old, new)))
    for (a, c), (b, d) in pairwise(((-1, -1), *pairs, (len(old), len(new)))):
        if (a + 1, c + 1) != (b, d):
            yield LineChange(a + 1, b, c + 1, d)


def _trim_common(old: Sequence[str], new: Sequence[str], part: LineChange) -> LineChange | None:
    """Cut off the items that both start and end with. None if nothing is left."""
    a, b, c, d = part
    head = _count_equal(old[a:b], new[c:d])
    tail = _count_equal(old[a + head : b][::-1], new[c + head : d][::-1])
    change = LineChange(a + head, b - tail, c + head, d - tail)
    return None if change.a == change.b and change.c == change.d else change


def _count_equal(one: Sequence[str], other: Sequence[str]) -> int:
    return next(
        (count for count, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


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


def _pair_unique_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    counts, new_counts = Counter(old), Counter(new)
    places = {line: number for number, line in enumerate(new) if new_counts[line] == 1}
    return ((number, places[line]) for number, line in enumerate(old) if counts[line] == 1 and line in places)


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
