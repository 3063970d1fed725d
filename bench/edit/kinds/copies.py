"""The same lines, or nearly the same, put somewhere else into the file."""

import random
from typing import NamedTuple

from bench.edit.hunk import Site, UnfitError
from bench.edit.lines import full, joined, offset_of
from bench.edit.names import misspelt


class Doubled(NamedTuple):
    """A file with a copy put into it."""

    file: str
    start: int
    """Where the site is now."""
    copy: int
    """Where the copy is."""


class Twin(NamedTuple):
    """Lines that differ from those of a site in one name."""

    lines: list[str]
    number: int
    """Which of them differs."""


def with_copy(site: Site, lines: list[str], chance: random.Random) -> Doubled:
    """The file with lines put where there is a blank one, not too near."""
    low, high = site.line - 2, site.line + len(site.texts.old) + 1
    blank = [number for number, line in enumerate(site.file.split("\n")) if not line.strip()]
    spots = [number for number in blank if not low <= number <= high]
    if not spots:
        raise UnfitError
    at = offset_of(site.file, chance.choice(spots))
    inserted = f"\n{joined(lines)}\n"
    file = site.file[:at] + inserted + site.file[at:]
    start = site.start + len(inserted) if at <= site.start else site.start
    if file[start : start + len(site.old)] != site.old:
        raise UnfitError
    return Doubled(file, start, at + 1)


def twin_of(site: Site, chance: random.Random) -> Twin:
    """The lines of the site with one name slightly wrong, as they are nowhere in the file."""
    lines = site.texts.old
    numbers = full(lines)
    chance.shuffle(numbers)
    for number in numbers:
        other = misspelt(lines[number], chance)
        if other and other not in site.file:
            lines[number] = other
            return Twin(lines, number)
    raise UnfitError
