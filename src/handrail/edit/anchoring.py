"""Takes two long lists of lines apart at the lines that both have once: quick, whatever they are."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise


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
