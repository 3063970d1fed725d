"""Slips of a whole text: what is meant is clear where it is there once, and refused where it is there twice or not."""

import random
import re
from collections.abc import Callable

from bench.edit.hunk import Draft, Hunk, Site, UnfitError, sent
from bench.edit.kinds.absent import elsewhere
from bench.edit.kinds.copies import with_copy
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import full, indent_of, joined
from bench.edit.names import names_in

Slip = Callable[[Site, random.Random], tuple[str, str]]
"""The two texts as a model sends them."""
Maker = Callable[[Hunk, random.Random], Draft]
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_QUOTES = {'"': "&quot;", "'": "&#39;"}
_WIDE = str.maketrans(",()", "，（）")


def meant(slip: Slip) -> Maker:
    """The slip, where the place is the only one."""

    def make(hunk: Hunk, chance: random.Random) -> Draft:
        site = usual_site(hunk, chance)
        return sent(site, *slip(site, chance))

    return make


def refused(slip: Slip) -> Maker:
    """The slip, where there is another such place, or a line that is to go is about something else."""

    def make(hunk: Hunk, chance: random.Random) -> Draft:
        site = usual_site(hunk, chance)
        old, new = slip(site, chance)
        if chance.random() < 0.5:
            return Draft(file=with_copy(site, site.texts.old, chance).file, old=old, new=new)
        names = [name for step in site.steps if step.tag == "-" for name in names_in(step.line) if len(name) > 4]
        if not names:
            raise UnfitError
        return Draft(file=elsewhere(site, chance.choice(names), chance).file, old=old, new=new)

    return make


def fences(site: Site, chance: random.Random) -> tuple[str, str]:
    """Code fences around both texts."""
    if "```" in site.file + site.new:
        raise UnfitError
    begin, end = f"```{chance.choice(['', site.hunk.language])}\n", chance.choice(["\n```", "\n```\n"])
    return begin + site.old + end, begin + site.new + end


def entities(site: Site, chance: random.Random) -> tuple[str, str]:
    """Both texts as HTML has them; in half of the cases the quotes too."""
    table = str.maketrans(_ENTITIES | (_QUOTES if chance.random() < 0.5 else {}))
    if not re.search("[&<>]", site.old) or re.search(r"&#?\w+;", site.old + site.new):
        raise UnfitError
    return site.old.translate(table), site.new.translate(table)


def fullwidth(site: Site, chance: random.Random) -> tuple[str, str]:
    """Commas and parentheses of an East Asian keyboard, in both texts or in the old one alone."""
    if not re.search("[,()]", site.old) or re.search("[，（）]", site.file):
        raise UnfitError
    return site.old.translate(_WIDE), site.new.translate(_WIDE) if chance.random() < 0.5 else site.new


def odd_spaces(site: Site, chance: random.Random) -> tuple[str, str]:
    """No-break spaces in both texts, where the file has none."""
    odd = chance.choice("\u00a0\u00a0\u202f")
    if odd in site.file or not re.search(r"\S \S", site.old):
        raise UnfitError
    if chance.random() < 0.3:
        return site.old.replace(" ", odd), site.new.replace(" ", odd)
    old, new = (re.sub(r"(?<=\S) (?=\S)", odd, text) for text in (site.old, site.new))
    return old, new


def escaped_old(site: Site, _: random.Random) -> tuple[str, str]:
    """Backslashes are doubled, or `${` is escaped, in the old text alone."""
    if "\\" in site.old and "\\\\" not in site.old + site.new:
        return site.old.replace("\\", "\\\\"), site.new
    if "${" in site.old and "\\" not in site.old + site.new:
        return site.old.replace("${", "\\${"), site.new
    raise UnfitError


def flattened(site: Site, _: random.Random) -> tuple[str, str]:
    """No line has its indentation; those that change do so one by one, and are as deep as before."""
    old, new = site.texts
    if len({indent_of(old[number]) for number in full(old)}) < 2 or len(old) != len(new):
        raise UnfitError
    if any(indent_of(one) != indent_of(other) for one, other in zip(old, new, strict=True)):
        raise UnfitError
    tags = "".join(step.tag for step in site.steps)
    if any(len(run) % 2 or run != "-" * (len(run) // 2) + "+" * (len(run) // 2) for run in re.findall(r"[-+]+", tags)):
        raise UnfitError
    return joined(map(str.strip, old)), joined(map(str.strip, new))


def flattened_and_longer(hunk: Hunk, chance: random.Random) -> Draft:
    """No line has its indentation, and lines come in: how deep they are, nobody can tell. Lines of several depths stay
    within, so that it is more than a first or a last line out of place."""
    site = usual_site(hunk, chance)
    old, new = ([line.strip() for line in lines] for lines in site.texts)
    inner = full(old)[1:-1]
    if len({indent_of(site.texts.old[number]) for number in inner}) < 2 or len(full(new)) <= len(full(old)):
        raise UnfitError
    return Draft(file=site.file, old=joined(old), new=joined(new))


def other_quotes(site: Site, chance: random.Random) -> tuple[str, str]:
    """The other quotes, on a line that stays."""
    return _in_kept_line(site, chance, _requoted)


def lost_comma(site: Site, chance: random.Random) -> tuple[str, str]:
    """A line that stays has lost the comma at its end, in both texts or in the old one alone."""
    old, new = _in_kept_line(site, chance, lambda line: line[:-1] if line.endswith(",") and len(line) > 2 else None)
    return old, new if chance.random() < 0.5 else site.new


def _in_kept_line(site: Site, chance: random.Random, slip: Callable[[str], str | None]) -> tuple[str, str]:
    """Both texts with the slip in one line that stays."""
    among = [number for number, step in enumerate(site.steps) if step.tag == " " and slip(step.line)]
    if not among:
        raise UnfitError
    number = chance.choice(among)
    steps = list(site.steps)
    steps[number] = steps[number]._replace(line=slip(steps[number].line) or "")
    texts = Site(site.hunk, tuple(steps), site.line, site.start).texts
    return joined(texts.old), joined(texts.new)


def _requoted(line: str) -> str | None:
    if ('"' in line) == ("'" in line) or (line.count('"') + line.count("'")) % 2 or "\\" in line or '"""' in line:
        return None
    return line.translate(str.maketrans("\"'", "'\""))
