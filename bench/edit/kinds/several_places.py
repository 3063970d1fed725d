"""More than one place would do: refusing is right."""

import random

from bench.edit.hunk import Draft, Hunk, UnfitError, site_of
from bench.edit.kinds.copies import with_copy
from bench.edit.kinds.every_place import every_exact
from bench.edit.lines import common_indent, full, indent_of, joined
from bench.edit.slips import dedented, indented


def several(hunk: Hunk, chance: random.Random) -> Draft:
    every = every_exact(hunk, chance)
    return Draft(file=every.file, old=every.old, new=every.new, exact=True)


def several_but_for_space(hunk: Hunk, chance: random.Random) -> Draft:
    """Nowhere as it is, and in two places once white space is forgiven."""
    site = site_of(hunk, 1)
    old, new = site.texts
    if len(old) < 2:
        raise UnfitError
    file = with_copy(site, site.texts.old, chance).file
    if chance.random() < 0.5:
        old[chance.choice(full(old[:-1]) or [0])] += "  "
    elif common_indent(old + new):
        old, new = dedented(site.texts)
    else:
        old, new = indented(old, "    "), indented(new, "    ")
    return Draft(file=file, old=joined(old), new=joined(new))


def several_indentations(hunk: Hunk, chance: random.Random) -> Draft:
    """The same lines at two indentations, and the old text at a third."""
    site = site_of(hunk, 1)
    if len(full(site.texts.old)) < 2:
        raise UnfitError
    step = "\t" if any("\t" in indent_of(line) for line in site.texts.old) else "    "
    file = with_copy(site, indented(site.texts.old, step), chance).file
    if common_indent(site.texts.old + site.texts.new):
        old, new = dedented(site.texts)
    else:
        old, new = (indented(lines, step * 2) for lines in site.texts)
    return Draft(file=file, old=joined(old), new=joined(new))
