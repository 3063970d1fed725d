"""Which lines Python's `re` would take too long over: it tries one way after the other, and some have too many."""

import re
import sys
from collections.abc import Iterator

import msgspec

from handrail.workspace.search.regex.alphabet import Alphabet
from handrail.workspace.search.regex.tree import At, Characters, Choice, Node, Repeat, Sequence

_BUDGET = 10**8
"""Steps that Python may take on one line: about a second."""
_MOST_WAYS = 64
_LONG = 32
"""Copies from which on a repetition counts as endless."""


class Limit:
    """Which lines Python's `re` may be given: from any place in them, it goes on as far as repetitions reach, and
    comes back once for each that can end at several places."""

    def __init__(self, node: Node, alphabet: Alphabet) -> None:
        effort = _effort(node, frozenset(), alphabet)
        self.never = effort.ways > _MOST_WAYS
        self._power = effort.degree + 1 if effort.endless else 0
        self._budget = _BUDGET // effort.ways
        self.longest = sys.maxsize if not effort.endless else int(self._budget ** (1 / (self._power + 1)))
        """Characters up to which any line will do."""
        reach = frozenset[str]().union(*_endless(node, alphabet))
        self._runs = re.compile(f"{alphabet.spelled(reach)}+")

    def allows(self, text: str, start: int, end: int) -> bool:
        """Whether a line will do."""
        if self.never or end - start <= self.longest:
            return not self.never
        reach = max((match.end() - match.start() for match in self._runs.finditer(text, start, end)), default=1)
        return (end - start) * reach**self._power <= self._budget


def _endless(node: Node, alphabet: Alphabet) -> Iterator[frozenset[str]]:
    """The characters that repetitions without an end may take in."""
    match node:
        case Characters() | At():
            return
        case Sequence(parts) | Choice(parts):
            for part in parts:
                yield from _endless(part, alphabet)
        case Repeat(body, least, most, _):
            if most is None or most - least > _LONG:
                yield from _all(body, alphabet)
            else:
                yield from _endless(body, alphabet)


def _all(node: Node, alphabet: Alphabet) -> Iterator[frozenset[str]]:
    match node:
        case Characters():
            yield alphabet.members(node)
        case At():
            return
        case Sequence(parts) | Choice(parts):
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


_TOO_MUCH = _Effort(_MOST_WAYS + 1, 0, True)


def _effort(node: Node, following: frozenset[str], alphabet: Alphabet) -> _Effort:
    """`following`: the characters that may come after it; if there are none, nothing has to come."""
    match node:
        case Characters() | At():
            return _Effort()
        case Sequence(parts):
            return _of_sequence(parts, following, alphabet)
        case Choice(ways):
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
    endless = node.most is None or node.most - node.least > _LONG
    if endless:
        return _Effort(1, 0 if clear else 1, True)
    return _Effort(1 if clear else 1 + (node.most or 0) - node.least, 0, inner.endless)


def _first(node: Node, alphabet: Alphabet) -> tuple[frozenset[str], bool]:
    """The characters a part may begin with, and whether it may be left out."""
    match node:
        case Characters():
            return alphabet.members(node), False
        case At():
            return frozenset(), True
        case Choice(ways):
            found = [_first(way, alphabet) for way in ways]
            return frozenset[str]().union(*(starts for starts, _ in found)), any(skippable for _, skippable in found)
        case Repeat(body, least, _, _):
            starts, skippable = _first(body, alphabet)
            return starts, skippable or least == 0
        case Sequence(parts):
            starts: frozenset[str] = frozenset()
            for part in parts:
                more, skippable = _first(part, alphabet)
                starts |= more
                if not skippable:
                    return starts, False
            return starts, True
