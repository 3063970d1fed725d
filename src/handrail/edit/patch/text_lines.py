"""The lines of a text, and where in it some lines are that follow each other."""

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate


class TextLines:
    """A text with plain newlines, line by line; the last one counts as ended, whether it is or not."""

    def __init__(self, text: str) -> None:
        self.ended = not text or text.endswith("\n")
        """Whether the last line has its newline."""
        self.text = text if self.ended else f"{text}\n"
        self.lines = self.text.split("\n")[:-1]
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        """Where each line begins, and where the text ends."""

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

    def alike(self, wanted: str, low: int, high: int) -> list[int]:
        """Lines that are the same but for the white space around them."""
        candidates = self._stripped.get(wanted.strip(), [])
        return candidates[bisect_left(candidates, low) : bisect_left(candidates, high)]

    @cached_property
    def _where(self) -> dict[str, list[int]]:
        return _numbers(self.lines)

    @cached_property
    def _stripped(self) -> dict[str, list[int]]:
        return _numbers([line.strip() for line in self.lines])


def _numbers(lines: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        found.setdefault(line, []).append(number)
    return found
