"""Texts that were right once: a name, a line beside the change, or a line between is not as it was."""

import random

import msgspec

from bench.edit.case import Splice
from bench.edit.hunk import Draft, Hunk, Site, UnfitError, sent, site_of
from bench.edit.kinds.copies import with_copy
from bench.edit.lines import full, indent_of, joined, offset_of
from bench.edit.names import misspelt, names_in, renamed, unlike


def one_token(hunk: Hunk, chance: random.Random) -> Draft:
    """A name in the middle of the old text is slightly wrong, in a line that goes if there is one."""
    site = site_of(hunk, 3)
    old = site.texts.old
    tags = [step.tag for step in site.steps if step.tag != "+"]
    inner = [number for number in full(old) if 0 < number < len(old) - 1]
    among = [number for number in inner if tags[number] == "-"] or inner
    if len(full(old)) < 5 or not among:
        raise UnfitError
    number = chance.choice(among)
    old[number] = _stale(old[number], hunk, chance)
    return sent(site, joined(old), site.new)


def stale_context(hunk: Hunk, chance: random.Random) -> Draft:
    """A line that is not next to the change is stale in both texts: the true one must survive."""
    site = site_of(hunk, 3)
    old, new = site.texts
    outer = _outer(site)
    if not outer or len(full(old)) < 4:
        raise UnfitError
    number = chance.choice(outer)
    stale = _stale(old[number], hunk, chance)
    if chance.random() < 0.5:
        again = misspelt(stale, chance)
        stale = again if again and again not in hunk.before else stale
    old[number] = new[number] = stale
    return sent(site, joined(old), joined(new))


def stale_sibling(hunk: Hunk, chance: random.Random) -> Draft:
    """What is meant is elsewhere and has changed since: only a sibling, where a line that stays is another, has the
    lines that are to go."""
    site = site_of(hunk, 3)
    old, new = site.texts
    outer = _outer(site)
    names = [name for step in site.steps if step.tag == "-" for name in names_in(step.line) if len(name) > 4]
    if not outer or not names or len(full(old)) < 4:
        raise UnfitError
    number, name = chance.choice(outer), chance.choice(names)
    other = unlike(name, site.file, chance)
    if other is None:
        raise UnfitError
    sibling = [renamed(line, name, other) for line in old]
    old[number] = new[number] = sibling[number] = _stale(old[number], hunk, chance)
    file = with_copy(site, sibling, chance).file
    return Draft(file=file, old=joined(old), new=joined(new))


def newer_file(hunk: Hunk, chance: random.Random) -> Draft:
    """The file has a line more than both texts, between two lines that stay: it must survive."""
    site = site_of(hunk, 3)
    gaps = [*range(1, site.kept_before), *range(1 - site.kept_after, 0)]
    old = site.texts.old
    if not gaps or len(full(old)) < 4:
        raise UnfitError
    gap = chance.choice(gaps)
    line = site.line + (gap if gap > 0 else len(old) + gap)
    lines = hunk.before.split("\n")
    extra = f"{_newer(lines, lines[line], chance)}\n"
    at = offset_of(hunk.before, line)
    file = hunk.before[:at] + extra + hunk.before[at:]
    here = offset_of(site.new, gap if gap > 0 else len(site.texts.new) + gap)
    right = (Splice(site.start, site.end + len(extra), site.new[:here] + extra + site.new[here:]),)
    return msgspec.structs.replace(sent(site, site.old, site.new), file=file, right=(right,))


def _newer(lines: list[str], neighbour: str, chance: random.Random) -> str:
    """A line like others of the file, and still a new one."""
    among = [line.strip() for line in lines if len(line.strip()) > 10]
    extra = misspelt(chance.choice(among), chance) if among else None
    if extra is None or not neighbour.strip() or any(extra in line for line in lines):
        raise UnfitError
    return indent_of(neighbour) + extra


def _outer(site: Site) -> list[int]:
    """Lines that stay, with another one that stays between them and the change; those at the end count from there."""
    old = site.texts.old
    before = [number for number in range(site.kept_before - 1) if old[number].strip()]
    return before + [-1 - number for number in range(site.kept_after - 1) if old[-1 - number].strip()]


def _stale(line: str, hunk: Hunk, chance: random.Random) -> str:
    stale = misspelt(line, chance)
    if stale is None or stale in hunk.before:
        raise UnfitError
    return stale
