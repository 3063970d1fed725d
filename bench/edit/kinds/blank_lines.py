"""Blank lines too few, and too many."""

import random

from bench.edit.hunk import Draft, Hunk, UnfitError, sent, site_of
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import full, joined


def dropped_blank(hunk: Hunk, chance: random.Random) -> Draft:
    """The old text lacks a blank line; the new one has it."""
    site = site_of(hunk, chance.choice([3, 5, 7]))
    return sent(site, joined(without_blank(site.texts.old, chance)), site.new)


def without_blank(lines: list[str], chance: random.Random) -> list[str]:
    """The lines without a blank one between two that are not: at the ends it would seem not to be meant at all."""
    numbers = full(lines)
    blanks = [number for number in range(numbers[0], numbers[-1]) if not lines[number].strip()] if numbers else []
    if not blanks or len(numbers) < 3:
        raise UnfitError
    dropped = chance.choice(blanks)
    return lines[:dropped] + lines[dropped + 1 :]


def extra_blank(hunk: Hunk, chance: random.Random) -> Draft:
    """Blank lines around both texts that the file does not have there."""
    site = usual_site(hunk, chance)
    head, tail = chance.choice([("\n", ""), ("", "\n\n"), ("\n", "\n\n")])
    return sent(site, head + site.old + tail, head + site.new + tail)
