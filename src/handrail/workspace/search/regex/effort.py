"""Which lines Python's `re` would take too long over: it tries one way after the other, and some have too many."""

import re
from collections.abc import Iterator

import msgspec

from handrail.workspace.search.regex.alphabet import Alphabet
from handrail.workspace.search.regex.tree import Alternation, Characters, Concatenation, Node, PositionTest, Repeat

_MAX_STEPS = 10**7
"""Steps that Python may take before it is asked whether to stop: some ten milliseconds."""
_MAX_PLAIN_STEPS = 2 * 10**9
"""The same for one line and an expression without endless repetitions, over which `re` is at its fastest."""
_MAX_WAYS = 64
_MAX_FINITE_COPIES = 32
"""Copies from which on a repetition counts as endless."""
_SHORT_PART_CHARS = 64
"""Characters of the parts that are not endless that go without saying."""
_MANY = 8
"""So many times the longest line are looked at together, to see whether all are short."""
_MAX_STRETCH_CHARS = 1 << 16
"""Characters that are searched at once at most: each may be a match, and those are held."""


class Limit:
    """Which lines Python's `re` may be given: from any place in them, it goes on as far as repetitions reach, and
    comes back once for each that can end at several places."""

    def __init__(self, node: Node, alphabet: Alphabet) -> None:
        effort = _effort(node, frozenset(), alphabet)
        self.never = effort.ways > _MAX_WAYS
        self._power = effort.degree + 1 if effort.endless else 0
        depth = _depth(node)
        self._each = effort.ways * max(1, depth)
        self._budget = _MAX_STEPS // (effort.ways * max(1, depth // _SHORT_PART_CHARS))
        self._longest = int(self._budget ** (1 / (self._power + 1)))
        """Characters up to which any line will do."""
        reach = frozenset[str]().union(*_endless(node, alphabet))
        self._runs = re.compile(f"{alphabet.spelled(reach)}+")

    def allows(self, text: str, start: int, end: int) -> bool:
        """Whether a line will do."""
        if self.never or end - start <= self._longest:
            return not self.never
        if not self._power:
            return (end - start) * self._each <= _MAX_PLAIN_STEPS
        reach = max((match.end() - match.start() for match in self._runs.finditer(text, start, end)), default=1)
        return (end - start) * reach**self._power <= self._budget

    def stretches(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Whole lines, as many together as the budget is enough for (True); a line by itself that is too long."""
        start = 0
        while start < len(text):
            end = self._end(text, start)
            if end > start:
                yield start, end, True
            else:
                end = text.find("\n", start) + 1 or len(text)
                yield start, end, False
            start = end

    def _end(self, text: str, start: int) -> int:
        """Where a stretch ends for which the budget is enough; its start where there is none."""
        end = _whole_lines(text, start, min(_MANY * self._longest, _MAX_STRETCH_CHARS))
        if end - start <= self._longest:
            return end
        longest_line = max(map(len, text[start:end].split("\n")))
        if (end - start) * longest_line**self._power <= self._budget:
            return end
        return _whole_lines(text, start, self._longest)


def _whole_lines(text: str, start: int, size: int) -> int:
    """Where the last line ends that ends within so many characters; the start where none does."""
    return len(text) if len(text) - start <= size else text.rfind("\n", start, start + size) + 1 or start


def _depth(node: Node) -> int:
    """How many characters the parts that are not endless can take in."""
    match node:
        case Characters():
            return 1
        case PositionTest():
            return 0
        case Concatenation(parts):
            return sum(map(_depth, parts))
        case Alternation(ways):
            return max(map(_depth, ways))
        case Repeat(body, least, most, _):
            return _depth(body) * max(1, least if most is None else most)


def _endless(node: Node, alphabet: Alphabet) -> Iterator[frozenset[str]]:
    """The characters that repetitions without an end may take in."""
    match node:
        case Characters() | PositionTest():
            return
        case Concatenation(parts) | Alternation(parts):
            for part in parts:
                yield from _endless(part, alphabet)
        case Repeat(body, least, most, _):
            if most is None or most - least > _MAX_FINITE_COPIES:
                yield from _all(body, alphabet)
            else:
                yield from _endless(body, alphabet)


def _all(node: Node, alphabet: Alphabet) -> Iterator[frozenset[str]]:
    match node:
        case Characters():
            yield alphabet.members(node)
        case PositionTest():
            return
        case Concatenation(parts) | Alternation(parts):
            for part in parts:
                yield from _all(part, alphabet)
        case Repeat(body, _, _, _):
            yield from _all(body, alphabet)


class _Effort(msgspec.Struct, frozen=True):
    ways: int = 1
    """In how many ways the parts that are not endless can match at one place."""
    degree: int = 0
    """How many endless repetitions can end at several places."""
    endless: bool = False

    def beside(self, other: "_Effort") -> "_Effort":
        return _Effort(self.ways * other.ways, self.degree + other.degree, self.endless or other.endless)


_TOO_MUCH = _Effort(_MAX_WAYS + 1, 0, True)


def _effort(node: Node, following: frozenset[str], alphabet: Alphabet) -> _Effort:
    """`following`: the characters that may come after it; if there are none, nothing has to come."""
    match node:
        case Characters() | PositionTest():
            return _Effort()
        case Concatenation(parts):
            return _of_sequence(parts, following, alphabet)
        case Alternation(ways):
            return _of_choice(ways, following, alphabet)
        case Repeat():
            return _of_repeat(node, following, alphabet)


def _of_sequence(parts: tuple[Node, ...], following: frozenset[str], alphabet: Alphabet) -> _Effort:
    total = _Effort()
    for part in reversed(parts):
        total = total.beside(_effort(part, following, alphabet))
        starts, skippable = _first(part, alphabet)
        following = starts | following if skippable else starts
    return total


def _of_choice(ways: tuple[Node, ...], following: frozenset[str], alphabet: Alphabet) -> _Effort:
    total = _Effort()
    taken: frozenset[str] = frozenset()
    overlapping = 1
    for way in ways:
        total = total.beside(_effort(way, following, alphabet))
        starts, skippable = _first(way, alphabet)
        starts = starts | following if skippable else starts
        overlapping += bool(starts & taken)
        taken |= starts
    return total.beside(_Effort(overlapping))


def _of_repeat(node: Repeat, following: frozenset[str], alphabet: Alphabet) -> _Effort:
    starts, _ = _first(node.body, alphabet)
    inner = _effort(node.body, following | starts, alphabet)
    clear = not starts & following
    if node.most == 1:
        return inner.beside(_Effort(1 if clear else 2))
    # More than one way through the body, many times over, is what takes forever.
    if inner.degree or inner.ways > 1:
        return _TOO_MUCH
    endless = node.most is None or node.most - node.least > _MAX_FINITE_COPIES
    if endless:
        return _Effort(1, 0 if clear else 1, True)
    return _Effort(1 if clear else 1 + (node.most or 0) - node.least, 0, inner.endless)


def _first(node: Node, alphabet: Alphabet) -> tuple[frozenset[str], bool]:
    """The characters a part may begin with, and whether it may be left out."""
    match node:
        case Characters():
            return alphabet.members(node), False
        case PositionTest():
            return frozenset(), True
        case Alternation(ways):
            found = [_first(way, alphabet) for way in ways]
            return frozenset[str]().union(*(starts for starts, _ in found)), any(skippable for _, skippable in found)
        case Repeat(body, least, _, _):
            starts, skippable = _first(body, alphabet)
            return starts, skippable or least == 0
        case Concatenation(parts):
            starts: frozenset[str] = frozenset()
            for part in parts:
                more, skippable = _first(part, alphabet)
                starts |= more
                if not skippable:
                    return starts, False
            return starts, True
