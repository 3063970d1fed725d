"""Finds a text in another, character for character.

A finder says where the first place at or behind a position is. So who needs to know that a place is the only one looks
for two, and who wants all of them goes on.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """A part of a text, from `start` to before `end`."""

    start: int
    end: int


Finder = Callable[[int], Span | None]


def build_exact_finder(text: str, old: str) -> Finder:
    """Character for character."""

    def find(start: int) -> Span | None:
        at = text.find(old, start)
        return None if at < 0 else Span(at, at + len(old))

    return find


MAX_PLACES = 100_000
"""Places that are replaced in one step."""
MAX_COUNTED_PLACES = 1_000
"""Places that are counted where there should be one."""
_MAX_COMPARED_CHARS = 20_000_000
"""Characters that counting may compare: every place costs the length of what is looked for."""


class ExactMatch(NamedTuple):
    """How to find more, and the first place."""

    find: Finder
    first: Span

    @property
    def unique(self) -> bool:
        """Whether there is no other place, not even one that overlaps the first."""
        return self.find(self.first.start + 1) is None

    def separate(self) -> Iterator[Span]:
        """All places that do not overlap one before them."""
        found: Span | None = self.first
        while found is not None:
            yield found
            found = self.find(found.end)

    def overlapping(self) -> Iterator[Span]:
        """All places."""
        found: Span | None = self.first
        while found is not None:
            yield found
            found = self.find(found.start + 1)


def find_exact_match(text: str, old: str) -> ExactMatch | None:
    """Where a text is, which is not empty; None when it is not there."""
    find = build_exact_finder(text, old)
    first = find(0)
    return None if first is None else ExactMatch(find, first)


def list_places(match: ExactMatch, most: int) -> tuple[list[Span], bool]:
    """The places, overlapping ones too, and whether these are all: counting ends where it would take long."""
    length = match.first.end - match.first.start
    enough = max(4, min(most, _MAX_COMPARED_CHARS // (length + 1)))
    found = list(itertools.islice(match.overlapping(), enough + 1))
    return found[:enough], len(found) <= enough
