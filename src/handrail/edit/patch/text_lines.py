"""The lines of a text, and where in it some lines are that follow each other."""

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TypeVar

from handrail.edit.patch.blocks import IndentBlock, parse_indent_blocks
from handrail.protocol.error import ToolError

Key = TypeVar("Key", bound=Hashable)
_MAX_TRIED_PLACES = 50
"""Places of a line that are looked at one by one."""
_CHARACTERS = 0x110000
_MAX_PASSED_LINES = 2_000_000_000
"""Lines of a text that are passed in search of lines that are in it often."""


class TextLines:
    """A text with plain newlines, line by line; the last one counts as ended, whether it is or not."""

    def __init__(self, text: str) -> None:
        self.ended = not text or text.endswith("\n")
        """Whether the last line has its newline."""
        self.text = text if self.ended else f"{text}\n"
        self.lines = self.text.split("\n")[:-1]
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        """Where each line begins, and where the text ends."""
        self._passed = 0
        self._named: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.lines)

    def line_at(self, position: int) -> int:
        """The line, from 0, that begins at a position or is the next to begin behind it."""
        return bisect_left(self.starts, position)

    def part(self, low: int, high: int) -> str:
        """Lines as text."""
        return self.text[self.starts[low] : self.starts[high]]

    def are_at(self, at: int, wanted: Sequence[str]) -> bool:
        """Whether lines are exactly there."""
        return at >= 0 and self.lines[at : at + len(wanted)] == wanted

    def places(self, wanted: Sequence[str], low: int, high: int) -> Iterator[int]:
        """Where lines are exactly that begin between two others. `wanted` is not empty."""
        rarest = min(range(len(wanted)), key=lambda number: len(self._where.get(wanted[number], ())))
        known = self._where.get(wanted[rarest], [])
        few = len(known) <= _MAX_TRIED_PLACES
        found = _numbers_between(known, low + rarest, high + rarest) if few else self._often(wanted, low, high)
        return (at for at in ((each - rarest if few else each) for each in found) if self.are_at(at, wanted))

    def _often(self, wanted: Sequence[str], low: int, high: int) -> Iterator[int]:
        """Where lines may be, of which each is there often. Lines are compared as characters, one for each kind."""
        kinds = "".join(chr(self._kinds[line]) for line in wanted)
        last = min(high - 1 + len(kinds), len(self))
        at = self._as_kinds.find(kinds, low, last)
        while at >= 0:
            self._count(at + 1 - low)
            yield at
            low = at + 1
            at = self._as_kinds.find(kinds, low, last)
        self._count(last - low)

    def _count(self, lines: int) -> None:
        self._passed += max(lines, 0)
        if self._passed > _MAX_PASSED_LINES:
            message = "the lines of its hunks are in the file too often to look for all of them. Send fewer hunks."
            raise ToolError("LIMIT_EXCEEDED", message)

    def block(self, at: int) -> IndentBlock:
        """What belongs to a line."""
        return self._blocks[at]

    def alike(self, wanted: str) -> list[int]:
        """The lines that are the same but for the white space around them."""
        return self._stripped.get(wanted.strip(), [])

    def beginning(self, wanted: str) -> list[int]:
        """The lines that begin with whole words, whatever white space is between them."""
        words = " ".join(wanted.split())
        if words not in self._named:
            self._named[words] = sorted(self._begin(words)) if re.search(r"\w", words) else []
        return self._named[words]

    def _begin(self, words: str) -> Iterator[int]:
        """Those that begin alike stand together in the order of the alphabet."""
        spaced, order = self._in_order
        for at in range(bisect_left(order, words, key=spaced.__getitem__), len(order)):
            line = spaced[order[at]]
            if not line.startswith(words):
                return
            if not re.match(r"\w\w", line[len(words) - 1 : len(words) + 1]):
                yield order[at]

    @cached_property
    def _in_order(self) -> tuple[list[str], list[int]]:
        spaced = [" ".join(line.split()) for line in self.lines]
        return spaced, sorted(range(len(spaced)), key=spaced.__getitem__)

    @cached_property
    def _blocks(self) -> list[IndentBlock]:
        return parse_indent_blocks(self.lines)

    @cached_property
    def _where(self) -> dict[str, list[int]]:
        return _numbers(self.lines)

    @cached_property
    def _stripped(self) -> dict[str, list[int]]:
        return _numbers([line.strip() for line in self.lines])

    @cached_property
    def _kinds(self) -> dict[str, int]:
        return {line: kind % _CHARACTERS for kind, line in enumerate(self._where)}

    @cached_property
    def _as_kinds(self) -> str:
        return "".join(chr(self._kinds[line]) for line in self.lines)


def _numbers_between(numbers: Sequence[int], low: int, high: int) -> Iterator[int]:
    return (numbers[at] for at in range(bisect_left(numbers, low), bisect_left(numbers, high)))


def _numbers(keys: Sequence[Key]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for number, key in enumerate(keys):
        found.setdefault(key, []).append(number)
    return found
