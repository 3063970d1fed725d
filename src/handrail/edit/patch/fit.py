"""Hunks that have their place, and the text that they are put into."""

from bisect import bisect_left, bisect_right

import msgspec

from handrail.edit.newlines import Replacement
from handrail.edit.patch.model import Hunk
from handrail.edit.patch.text_lines import TextLines


class PlacedHunk(msgspec.Struct, frozen=True):
    """Where a hunk is, in lines from 0, and what it replaces there."""

    start: int
    end: int
    strategy: str
    replacements: tuple[Replacement, ...]


class PatchTarget:
    """A file that hunks are put into, one behind the other."""

    def __init__(self, text: str, path: str, readable: str | None = None) -> None:
        self.lines = TextLines(text)
        self.path = path
        self._readable = None if readable is None or readable == text else readable
        self.fits: list[PlacedHunk] = []
        self._offset = 0
        """How far the last hunk that stated its line was off."""

    @property
    def low(self) -> int:
        """The first line, from 0, that the next hunk can begin with."""
        return self.fits[-1].end if self.fits else 0

    def add(self, hunk: Hunk, fit: PlacedHunk) -> None:
        """The next hunk has its place."""
        if hunk.stated is not None:
            self._offset = fit.start - _stated(hunk)
        self.fits.append(fit)

    def stated(self, hunk: Hunk) -> int | None:
        """The line, from 0, that a hunk says it begins with, or that it pushes down."""
        return None if hunk.stated is None else _stated(hunk) + self._offset

    def taken(self, start: int, end: int) -> bool:
        """Whether lines are those of a hunk before."""
        number = bisect_right(self.fits, start, key=lambda fit: fit.end)
        return number < bisect_left(self.fits, end, key=lambda fit: fit.start)

    def part(self, low: int, high: int) -> tuple[str, str]:
        """Lines as text, and as they can be shown."""
        text = self.lines.part(low, high)
        shown = self._readable
        return text, text if shown is None else shown[self.lines.starts[low] : self.lines.starts[high]]


def _stated(hunk: Hunk) -> int:
    return (hunk.stated or 0) - bool(hunk.old)
