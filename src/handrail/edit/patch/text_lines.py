"""The lines of a text, and where in it some lines are that follow each other."""

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
_WORD = re.compile(r"\w+")
_CLOSERS = ("}", ")", "]", "end")
_OPENERS = ("{", "(", "[", ":", "=>", "do", "then")


class TextLines:
    """A text with plain newlines, line by line; the last one counts as ended, whether it is or not."""

    def __init__(self, text: str) -> None:
        self.ended = not text or text.endswith("\n")
        """Whether the last line has its newline."""
        self.text = text if self.ended else f"{text}\n"
        self.lines = self.text.split("\n")[:-1]
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        """Where each line begins, and where the text ends."""
        self._block_ends: dict[int, int] = {}

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

    def places(self, wanted: Sequence[str], low: int, high: int, most: int = 2) -> list[int]:
        """Where lines are exactly, between two others; so many places at most. `wanted` is not empty."""
        rarest = min(range(len(wanted)), key=lambda number: len(self._where.get(wanted[number], ())))
        candidates = self._where.get(wanted[rarest], [])
        found: list[int] = []
        for number in range(bisect_left(candidates, low + rarest), len(candidates)):
            at = candidates[number] - rarest
            if at + len(wanted) > high or len(found) == most:
                break
            if self.are_at(at, wanted):
                found.append(at)
        return found

    def alike(self, wanted: str, low: int, high: int) -> Iterator[int]:
        """Lines that are the same but for the white space around them."""
        return _between(self._stripped.get(wanted.strip(), []), low, high)

    def beginning(self, wanted: str, low: int, high: int) -> Iterator[int]:
        """Lines that begin with the same words, two at most; none where there are no words."""
        return _between(self._by_words.get(first_words(wanted), []), low, high)

    def block_end(self, at: int) -> int:
        """Behind the last line that belongs to one: those that are further in, and what closes them."""
        if at not in self._block_ends:
            self._block_ends[at] = _block_end(self.lines, at)
        return self._block_ends[at]

    @cached_property
    def _where(self) -> dict[str, list[int]]:
        return _numbers(self.lines)

    @cached_property
    def _stripped(self) -> dict[str, list[int]]:
        return _numbers([line.strip() for line in self.lines])

    @cached_property
    def _by_words(self) -> dict[tuple[str, ...], list[int]]:
        found = _numbers([first_words(line) for line in self.lines])
        for words, numbers in _numbers([first_words(line)[:1] for line in self.lines]).items():
            found.setdefault(words, numbers)[:] = numbers
        found.pop((), None)
        return found


def first_words(line: str) -> tuple[str, ...]:
    """The first two words of a line, whatever is between them."""
    return tuple(found[0] for found in islice(_WORD.finditer(line), 2))


def _between(numbers: Sequence[int], low: int, high: int) -> Iterator[int]:
    return (numbers[at] for at in range(bisect_left(numbers, low), bisect_left(numbers, high)))


def _block_end(lines: Sequence[str], at: int) -> int:
    own = _indentation(lines[at])
    for number in range(at + 1, len(lines)):
        line = lines[number].strip()
        if not line or _indentation(lines[number]) > own:
            continue
        closes = line.startswith(_CLOSERS) or line == "{"
        if not closes or not line.endswith(_OPENERS):
            return number + closes
    return len(lines)


def _indentation(line: str) -> int:
    expanded = line[: len(line) - len(line.lstrip())].expandtabs(8)
    return len(expanded)


def _numbers(keys: Sequence[Key]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for number, key in enumerate(keys):
        found.setdefault(key, []).append(number)
    return found
