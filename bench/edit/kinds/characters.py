"""Characters that look alike: quotes, dashes, spaces."""

import random
import re

import msgspec

from bench.edit.case import Splice
from bench.edit.hunk import Draft, Hunk, UnfitError, sent, texts_of
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import joined
from bench.edit.slips import curly

_DASHES = "–‑−"
_BETWEEN_LETTERS = re.compile("(?<=[A-Za-z]) (?=[A-Za-z])")


def smart_quotes(hunk: Hunk, chance: random.Random) -> Draft:
    """In the old text only."""
    site = usual_site(hunk, chance)
    if not re.search("[\"']", site.old):
        raise UnfitError
    return sent(site, curly(site.old), site.new)


def smart_quotes_in_both(hunk: Hunk, chance: random.Random) -> Draft:
    """In both texts, where the file has plain ones and nothing else."""
    site = usual_site(hunk, chance)
    quotes = {quote for quote in "\"'" if quote in site.new}
    if not quotes or any(quote not in site.old for quote in quotes) or re.search("[“”‘’]", site.file + site.new):
        raise UnfitError
    return sent(site, curly(site.old), curly(site.new))


def lookalike_in_old(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    dashes = [("-", dash) for dash in _DASHES] if "-" in site.old else []
    spaces = [(" ", "\u00a0")] if re.search(r"\S \S", site.old) else []
    if not dashes + spaces:
        raise UnfitError
    plain, other = chance.choice(dashes + spaces)
    if plain == "-":
        return sent(site, site.old.replace(plain, other), site.new)
    old = re.sub(r"(?<=\S) (?=\S)", lambda _: chance.choice([other, plain]), site.old)
    return sent(site, old, site.new)


def lookalike_in_file(hunk: Hunk, chance: random.Random) -> Draft:
    """The file has the typographic character in a line that stays: it may stay, or become what the model wrote."""
    site = usual_site(hunk, chance)
    among = [number for number, step in enumerate(site.steps) if step.tag == " " and _lookalikes(step.line)]
    if not among:
        raise UnfitError
    number = chance.choice(among)
    steps = list(site.steps)
    steps[number] = steps[number]._replace(line=chance.choice(_lookalikes(steps[number].line)))
    old, new = texts_of(tuple(steps))
    file = site.file[: site.start] + joined(old) + site.file[site.end :]
    end = site.start + len(joined(old))
    right = ((Splice(site.start, end, joined(new)),), (Splice(site.start, end, site.new),))
    return msgspec.structs.replace(sent(site, site.old, site.new), file=file, right=right)


def _lookalikes(line: str) -> list[str]:
    """The line with other characters that look the same, in all ways there are."""
    ways = [
        line.replace(" - ", " – ", 1),
        curly(line),
        _BETWEEN_LETTERS.sub("\u00a0", line, count=1),
    ]
    return [way for way in ways if way != line]
