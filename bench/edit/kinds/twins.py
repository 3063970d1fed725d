"""Two places that differ in one name only: the one that is meant, or none where neither is."""

import random

import msgspec

from bench.edit.case import Splice
from bench.edit.hunk import Draft, Hunk, UnfitError, sent, site_of
from bench.edit.kinds.copies import twin_of, with_copy
from bench.edit.lines import common_indent, full, joined
from bench.edit.names import misspelt
from bench.edit.slips import dedented


def near_twin_exact(hunk: Hunk, chance: random.Random) -> Draft:
    site = site_of(hunk, 2)
    if len(site.texts.old) < 3:
        raise UnfitError
    file, start, _ = with_copy(site, twin_of(site, chance).lines, chance)
    if file.count(site.old) != 1:
        raise UnfitError
    right = (Splice(start, start + len(site.old), site.new),)
    return Draft(file=file, old=site.old, new=site.new, right=(right,), exact=True)


def near_twin_space(hunk: Hunk, chance: random.Random) -> Draft:
    """White space is not as the file has it; the names say which of both is meant."""
    exact = near_twin_exact(hunk, chance)
    site = site_of(hunk, 2)
    old, new = site.texts
    if common_indent(old + new) and chance.random() < 0.5:
        old, new = dedented(site.texts)
    else:
        old[chance.choice(full(old[:-1]) or [0])] += "  "
    return msgspec.structs.replace(exact, old=joined(old), new=joined(new), exact=False)


def neither_twin(hunk: Hunk, chance: random.Random) -> Draft:
    """Two places, each one name away from the old text, which is gone: any guess would be one."""
    site = site_of(hunk, 2)
    if len(full(site.texts.old)) < 4:
        raise UnfitError
    twin = twin_of(site, chance)
    file, start, _ = with_copy(site, twin.lines, chance)
    lines = site.texts.old
    other = misspelt(lines[twin.number], chance)
    if other is None or other in file:
        raise UnfitError
    lines[twin.number] = other
    file = file[:start] + joined(lines) + file[start + len(site.old) :]
    return msgspec.structs.replace(sent(site, site.old, site.new), file=file, right=())
