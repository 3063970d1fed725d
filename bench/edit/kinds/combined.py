"""Two slips at once."""

import random
import re

from bench.edit.hunk import Draft, Hunk, Texts, UnfitError, sent, site_of
from bench.edit.kinds.blank_lines import without_blank
from bench.edit.kinds.line_endings import in_windows
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import joined
from bench.edit.slips import curly, dedented, numbered, paired, retabbed, shifted, trailing


def dedented_trailing(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    old, new = dedented(site.texts)
    return sent(site, joined(trailing(old, chance)), joined(new))


def numbers_and_crlf(hunk: Hunk, chance: random.Random) -> Draft:
    """Line numbers, where the file or both texts have line endings of the other sort."""
    site = usual_site(hunk, chance)
    old, new = map(joined, numbered(site.texts, site.line, chance))
    if chance.random() < 0.5:
        return in_windows(sent(site, old, new))
    return sent(site, paired(old), paired(new))


def tabs_and_quotes(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    old, new = retabbed(site.texts, site.file)
    if not re.search("[\"']", site.old):
        raise UnfitError
    return sent(site, curly(joined(old)), joined(new))


def shifted_in_crlf(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    old, new = shifted(site.texts, chance)
    return in_windows(sent(site, joined(old), joined(new)))


def dedented_without_blank(hunk: Hunk, chance: random.Random) -> Draft:
    """The old text lacks a blank line besides; the new one has it."""
    site = site_of(hunk, chance.choice([3, 5, 7]))
    old, new = dedented(site.texts)
    return sent(site, joined(without_blank(old, chance)), joined(new))


def escaped_and_dedented(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    if "\\" in site.old + site.new or len(site.texts.old) < 2:
        raise UnfitError
    return sent(site, *map(_escaped, dedented(site.texts)))


def _escaped(lines: list[str]) -> str:
    return joined(lines).replace("\n", "\\n").replace("\t", "\\t").replace('"', '\\"')


def numbers_and_trailing(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    old, new = numbered(Texts(trailing(site.texts.old, chance), site.texts.new), site.line, chance)
    return sent(site, joined(old), joined(new))
