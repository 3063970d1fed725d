"""replaceAll: every place, each as the file has it there."""

import random
from collections import defaultdict

from bench.edit.case import Splice
from bench.edit.hunk import Draft, Hunk, UnfitError, site_of
from bench.edit.kinds.copies import with_copy
from bench.edit.lines import indent_of, joined
from bench.edit.names import misspelt
from bench.edit.slips import dedented, indented, trailing


def repeated(text: str, chance: random.Random) -> tuple[list[str], int]:
    """One to three lines that are in a text two to six times, and nowhere as a part of others; and how many."""
    lines = text.split("\n")
    count = chance.choice([1, 1, 2, 3])
    places: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for at in range(len(lines) - count + 1):
        block = tuple(lines[at : at + count])
        if all(line.strip() for line in block) and len("".join(block).strip()) > 12:
            places[block] += 1
    found = [block for block, often in places.items() if 2 <= often <= 6 and text.count(joined(block)) == often]
    if not found:
        raise UnfitError
    return list(chance.choice(found)), count


def every_exact(hunk: Hunk, chance: random.Random) -> Draft:
    lines, count = repeated(hunk.before, chance)
    number = chance.randrange(count)
    changed = misspelt(lines[number], chance)
    if changed is None:
        raise UnfitError
    old = joined(lines)
    new = joined([*lines[:number], changed, *lines[number + 1 :]])
    starts = [at for at in range(len(hunk.before)) if hunk.before.startswith(old, at)]
    right = tuple(Splice(at, at + len(old), new) for at in starts)
    return Draft(file=hunk.before, old=old, new=new, right=(right,), replace_all=True, exact=True)


def every_space(hunk: Hunk, chance: random.Random) -> Draft:
    """Two places, perhaps at two indentations, and an old text that is at neither as it is."""
    site = site_of(hunk, chance.choice([0, 1]))
    if len(site.texts.old) < 2:
        raise UnfitError
    flat = dedented(site.texts)
    own = indent_of(site.texts.old[0])
    deeper = chance.choice(["", "\t" if "\t" in own else "    "])
    copied, renewed = (indented(lines, deeper) for lines in site.texts)
    file, start, copy = with_copy(site, copied, chance)
    right = (
        Splice(start, start + len(site.old), site.new),
        Splice(copy, copy + len(joined(copied)), joined(renewed)),
    )
    old, new = flat if deeper or chance.random() < 0.5 else (trailing(site.texts.old, chance), site.texts.new)
    return Draft(file=file, old=joined(old), new=joined(new), right=(right,), replace_all=True)


def every_some_space(hunk: Hunk, chance: random.Random) -> Draft:
    """One place as it is, one with white space behind a line that stays: the first alone is right, and so are both."""
    site = site_of(hunk, chance.choice([1, 2]))
    if not site.kept_before or not site.steps[0].line.strip():
        raise UnfitError
    copied, renewed = site.texts
    copied[0] += "  "
    renewed[0] += "  "
    file, start, copy = with_copy(site, copied, chance)
    here = Splice(start, start + len(site.old), site.new)
    there = Splice(copy, copy + len(joined(copied)), joined(renewed))
    right = ((here,), (here, there))
    return Draft(file=file, old=site.old, new=site.new, right=right, replace_all=True, exact=True)
