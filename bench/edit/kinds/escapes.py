"""Texts that were escaped once too often."""

import json
import random

from bench.edit.hunk import Draft, Hunk, UnfitError, sent
from bench.edit.kinds.plain import usual_site


def escaped_newlines(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    if "\\" in site.old + site.new or len(site.texts.old) < 2:
        raise UnfitError
    old, new = (text.replace("\n", "\\n").replace("\t", "\\t") for text in (site.old, site.new))
    return sent(site, old, new)


def escaped_quotes(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    if "\\" in site.old + site.new or '"' not in site.old:
        raise UnfitError
    return sent(site, *(text.replace('"', '\\"') for text in (site.old, site.new)))


def escaped_as_json(hunk: Hunk, chance: random.Random) -> Draft:
    """Newlines, quotes and the backslashes that were there already."""
    site = usual_site(hunk, chance)
    if "\\" not in site.old or len(site.texts.old) < 2:
        raise UnfitError
    return sent(site, *(json.dumps(text, ensure_ascii=False)[1:-1] for text in (site.old, site.new)))


def doubled_backslashes(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    if "\\" not in site.old or "\\\\" in site.old + site.new:
        raise UnfitError
    return sent(site, *(text.replace("\\", "\\\\") for text in (site.old, site.new)))
