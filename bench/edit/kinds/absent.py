"""What is meant is not in the file: refusing is right, however much something looks like it."""

import random

from bench.edit.hunk import Draft, Hunk, Site, UnfitError, site_of, texts_of
from bench.edit.languages import LANGUAGES
from bench.edit.lines import full, indent_of, joined, occurs, squashed
from bench.edit.names import names_in, renamed, unlike
from bench.edit.slips import dedented, trailing


def nowhere(hunk: Hunk, chance: random.Random) -> Draft:
    """A text of another file."""
    changed = [number for number, step in enumerate(hunk.stranger) if step.tag != " "]
    if not changed:
        raise UnfitError
    margin = chance.choice([2, 3])
    old, new = texts_of(hunk.stranger[max(0, changed[0] - margin) : changed[-1] + 1 + margin])
    there = {line.strip() for line in hunk.before.split("\n")}
    telling = [line.strip() for line in old if len(line.strip()) > 3]
    if len(telling) < 3 or sum(line in there for line in telling) > len(telling) / 3:
        raise UnfitError
    return Draft(file=hunk.before, old=joined(old), new=joined(new))


def other_definition(hunk: Hunk, chance: random.Random) -> Draft:
    """The lines are there, but in the definition of something else: the one that is meant is gone."""
    site = site_of(hunk, chance.choice([5, 7, 9]))
    if len(full(site.texts.old)) < 3:
        raise UnfitError
    return elsewhere(site, _definition_around(site), chance)


def _definition_around(site: Site) -> str:
    """The name of what the change is inside of: its definition is before it and stays."""
    before = [step.line for step in site.steps[: site.kept_before]]
    depth = len(indent_of(next((step.line for step in site.steps[site.kept_before :] if step.line.strip()), "")))
    for line in reversed(before):
        found = LANGUAGES[site.hunk.language].definition.search(line)
        if found and found.lastindex and len(indent_of(line)) < depth:
            return found[found.lastindex]
        if line.strip() and len(indent_of(line)) < depth and line.strip()[0] not in "){":
            depth = len(indent_of(line))
    raise UnfitError


def other_line(hunk: Hunk, chance: random.Random) -> Draft:
    """A line that is to go is about something else in the file."""
    site = site_of(hunk, chance.choice([0, 1, 2, 3]))
    names = [name for step in site.steps if step.tag == "-" for name in names_in(step.line) if len(name) > 4]
    if not names:
        raise UnfitError
    return elsewhere(site, chance.choice(names), chance)


def elsewhere(site: Site, name: str, chance: random.Random) -> Draft:
    """The file speaks of something else where the site has this name."""
    other = unlike(name, site.file, chance)
    if other is None:
        raise UnfitError
    lines = [renamed(line, name, other) for line in site.texts.old]
    file = site.file[: site.start] + joined(lines) + site.file[site.end :]
    if occurs(site.texts.old, file) or occurs(site.texts.new, file):
        raise UnfitError
    return Draft(file=file, old=site.old, new=site.new)


def already_applied(hunk: Hunk, chance: random.Random) -> Draft:
    """The edit has been made: the old text is gone, and doing it again must not do harm."""
    site = site_of(hunk, chance.choice([2, 3]))
    file = site.file[: site.start] + site.new + site.file[site.end :]
    if not any(step.tag == "+" for step in site.steps):
        raise UnfitError
    return Draft(file=file, old=site.old, new=site.new)


def already_applied_space(hunk: Hunk, chance: random.Random) -> Draft:
    """The same, with white space that is not as the file has it."""
    site = site_of(hunk, chance.choice([2, 3]))
    old, new = site.texts
    added = squashed(joined(step.line for step in site.steps if step.tag == "+"))
    if not added or squashed(site.old) == squashed(site.new):
        raise UnfitError
    there = joined(trailing(new, chance)) if chance.random() < 0.5 else site.new
    file = site.file[: site.start] + there + site.file[site.end :]
    if squashed(site.old) in squashed(file):
        raise UnfitError
    old, new = dedented(site.texts) if chance.random() < 0.5 else (trailing(old, chance), new)
    return Draft(file=file, old=joined(old), new=joined(new))
