"""Edits that need no tolerance, and new texts that must not get any."""

import random

from bench.edit.hunk import Draft, Hunk, Site, UnfitError, sent, site_of
from bench.edit.languages import LANGUAGES
from bench.edit.lines import joined
from bench.edit.slips import trailing

_ODD = (
    "“quoted” – like ‘this’",
    "a \\n b \\t c",
    'he said \\"no\\"',
    "12: twelve",
    "non\u00a0breaking",
    "back\\\\slashes",
)


def usual_site(hunk: Hunk, chance: random.Random) -> Site:
    """The changed lines with up to three around them."""
    return site_of(hunk, chance.choice([1, 2, 3, 3]))


def exact(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    return sent(site, site.old, site.new, exact=True)


def verbatim(hunk: Hunk, chance: random.Random) -> Draft:
    """A new line has what might be taken for a slip; the old text is as it should be, so it is meant."""
    site = _with_odd_line(usual_site(hunk, chance), chance)
    return sent(site, site.old, site.new, exact=True)


def verbatim_after_slip(hunk: Hunk, chance: random.Random) -> Draft:
    """The same where the old text has a slip of another sort."""
    site = _with_odd_line(usual_site(hunk, chance), chance)
    return sent(site, joined(trailing(site.texts.old, chance)), site.new)


def _with_odd_line(site: Site, chance: random.Random) -> Site:
    """The commit with a comment at the end of a line that it adds."""
    added = [number for number, step in enumerate(site.steps) if step.tag == "+" and step.line.strip()]
    if not added or any(character in site.old for character in "“”‘’–\\\u00a0"):
        raise UnfitError
    number = chance.choice(added)
    steps = list(site.steps)
    comment = f"  {LANGUAGES[site.hunk.language].comment} {chance.choice(_ODD)}"
    steps[number] = steps[number]._replace(line=steps[number].line + comment)
    return Site(site.hunk, tuple(steps), site.line, site.start)
