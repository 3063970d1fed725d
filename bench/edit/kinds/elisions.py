"""Lines that the model did not care to write: left out of both texts, or of the new one only."""

import random

from bench.edit.hunk import Draft, Hunk, UnfitError, sent, site_of
from bench.edit.languages import LANGUAGES
from bench.edit.lines import full, indent_of, joined
from bench.edit.names import misspelt

_FEWEST = 3
"""Lines that are worth leaving out."""
_REACH = 80
"""Lines behind a place within which a line is looked for."""


def elided_middle(hunk: Hunk, chance: random.Random) -> Draft:
    """The middle of the lines behind the change is left out of both texts."""
    site = site_of(hunk, chance.choice([6, 7, 8, 9]))
    old, new = site.texts
    head, tail = chance.choice([0, 1]), chance.choice([1, 2])
    if site.kept_after - head - tail < _FEWEST or not old[-1].strip() or not old[-tail].strip():
        raise UnfitError
    mark = indent_of(old[-tail]) + _mark(hunk, chance)
    cut = head - site.kept_after
    return sent(site, *(joined([*lines[:cut], mark, *lines[-tail:]]) for lines in (old, new)))


def _mark(hunk: Hunk, chance: random.Random) -> str:
    comment = LANGUAGES[hunk.language].comment
    mark = chance.choice(["...", f"{comment} ...", f"{comment} ... existing code ..."])
    if mark in hunk.before:
        raise UnfitError
    return mark


def ambiguous_tail(hunk: Hunk, chance: random.Random) -> Draft:
    """Behind what is left out comes a line that there is more than once, and that is to be changed."""
    lines = hunk.before.split("\n")
    pairs = (at for at in range(hunk.first, len(lines) - 1) if lines[at].strip() and lines[at + 1].strip())
    first = next(pairs, hunk.first)
    head = lines[first : first + 2]
    behind = lines[first + 2 + _FEWEST : first + _REACH]
    tails = [line for line in behind if len(line.strip()) > 5 and behind.count(line) > 1 and misspelt(line, chance)]
    if len(full(head)) < 2 or not tails or hunk.before.count(joined(head)) != 1:
        raise UnfitError
    tail = chance.choice(tails)
    mark = indent_of(tail) + _mark(hunk, chance)
    changed = misspelt(tail, chance)
    if changed is None:
        raise UnfitError
    return Draft(file=hunk.before, old=joined([*head, mark, tail]), new=joined([*head, mark, changed]))


def omitted_in_new(hunk: Hunk, chance: random.Random) -> Draft:
    """The new text says that lines stay, and would remove them: the old one has them in full."""
    site = site_of(hunk, chance.choice([5, 7, 9]))
    old, new = site.texts
    if site.kept_after >= _FEWEST:
        low = len(new) - site.kept_after
        high = len(new) - chance.choice([0, 1])
    else:
        low, high = chance.choice([0, 1]), site.kept_before
    if len(full(new[low:high])) < _FEWEST:
        raise UnfitError
    mark = indent_of(new[full(new[low:high])[0] + low]) + _promise(hunk, chance)
    return sent_to_refuse(hunk, old, [*new[:low], mark, *new[high:]])


def _promise(hunk: Hunk, chance: random.Random) -> str:
    words = [
        "... rest unchanged",
        "... rest of the code unchanged ...",
        "... existing code ...",
        "... (rest of the function stays the same)",
        "... remaining code unchanged ...",
        "rest of the code remains the same",
        "...",
    ]
    mark = f"{LANGUAGES[hunk.language].comment} {chance.choice(words)}"
    if mark in hunk.before:
        raise UnfitError
    return mark


def sent_to_refuse(hunk: Hunk, old: list[str], new: list[str]) -> Draft:
    """An edit that is found where it means, and must be refused nevertheless."""
    return Draft(file=hunk.before, old=joined(old), new=joined(new), exact=True)
