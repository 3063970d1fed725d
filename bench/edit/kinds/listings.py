"""Texts copied from a listing, line numbers and all."""

import random

from bench.edit.hunk import Draft, Hunk, sent
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import joined
from bench.edit.slips import numbered


def line_numbers(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    old, new = numbered(site.texts, site.line, chance)
    return sent(site, joined(old), joined(new))
