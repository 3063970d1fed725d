"""Pieces of what is looked for, and where in a text they are."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_MAX_SCANNED_CHARS = 60_000_000
"""Characters that are searched at most for each kind of pieces."""
_MAX_RARE_HITS = 24
"""Of one line or word: what is there more often says little."""
MAX_COMPARED_CHARACTERS = 400
"""Characters of a line that are compared."""


class Hit(NamedTuple):
    """Where a piece of what is looked for is."""

    position: int
    line: int
    """Of what is looked for."""
    weight: float
    """How much it says."""


def split_whole_lines(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Lines, without the white space around them, with their numbers."""
    return ((line.strip()[:MAX_COMPARED_CHARACTERS], number) for number, line in enumerate(wanted))


def split_halves(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Where one word of a line is another, one half of it is often still there."""
    for line, number in split_whole_lines(wanted):
        half = len(line) // 2
        yield from ((piece, number) for piece in (line[:half].strip(), line[half:].strip()) if len(piece) >= 8)


def split_numbered_words(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Words, with the numbers of their lines."""
    for number, line in enumerate(wanted):
        yield from ((word, number) for word in re.findall(r"\w{2,}", line[:MAX_COMPARED_CHARACTERS]))


def select_rarest(pieces: Iterable[tuple[str, int]], size: int) -> list[tuple[str, int]]:
    """The longest, as they are likely to be rare; as many as there is time to look for."""
    first = {piece: number for piece, number in reversed(list(pieces)) if piece}
    most = max(2, min(40, _MAX_SCANNED_CHARS // (size + 1)))
    return sorted(first.items(), key=lambda item: -len(item[0]))[:most]


def find_piece_hits(text: str, pieces: Iterable[tuple[str, int]]) -> tuple[list[Hit], list[Hit]]:
    """Where pieces are, those that are rare and the first of those that are not."""
    rare: list[Hit] = []
    often: list[Hit] = []
    for piece, number in pieces:
        places: list[int] = []
        at = text.find(piece)
        while at >= 0 and len(places) <= _MAX_RARE_HITS:
            places.append(at)
            at = text.find(piece, at + len(piece))
        found = rare if len(places) <= _MAX_RARE_HITS else often
        found += (Hit(place, number, len(piece) / len(places)) for place in places)
    return rare, often
