"""What two sequences have in common, in bounded time."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from handrail.edit.hunks import count_common_items


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
