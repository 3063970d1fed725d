"""Blank lines too few, and too many."""

import random

from bench.edit.hunk import Draft, Hunk, UnfitError, sent, site_of
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import full, joined


def dropped_blank(hunk: Hunk, chance: random.Random) -> Draft:
    """The old text lacks a blank line; the new one has it."""
    site = site_of(hunk, chance.choice([3, 5, 7]))
    old, new = site.texts
    blanks = [number for number in range(1, len(old) - 1) if not old[number].strip()]
    if not blanks or len(full(old)) < 3:
        raise UnfitError
    del old[chance.choice(blanks)]
    return sent(site, joined(old), joined(new))


def extra_blank(hunk: Hunk, chance: random.Random) -> Draft:
    """Blank lines around both texts that the file does not have there."""
    site = usual_site(hunk, chance)
    head, tail = chance.choice([("\n", ""), ("", "\n\n"), ("\n", "\n\n")])
    return sent(site, head + site.old + tail, head + site.new + tail)
