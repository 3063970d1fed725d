"""Line endings of another sort, of two sorts, and none at the end."""

import random

import msgspec

from bench.edit.case import Splice
from bench.edit.hunk import Draft, Hunk, Site, UnfitError, sent, site_of
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import joined
from bench.edit.slips import paired, trailing


def crlf_in_old(hunk: Hunk, chance: random.Random) -> Draft:
    """In both texts, where the file has plain newlines."""
    site = usual_site(hunk, chance)
    if len(site.texts.old) < 2:
        raise UnfitError
    return sent(site, paired(site.old), paired(site.new))


def crlf_file(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    if len(site.texts.old) < 2:
        raise UnfitError
    return in_windows(sent(site, site.old, site.new, exact=True))


def in_windows(draft: Draft) -> Draft:
    """The same where all lines of the file end the way of Windows."""

    def moved(position: int) -> int:
        return position + draft.file.count("\n", 0, position)

    right = tuple(
        tuple(Splice(moved(start), moved(end), paired(text)) for start, end, text in splices) for splices in draft.right
    )
    return msgspec.structs.replace(draft, file=paired(draft.file), right=right)


def mixed_endings(hunk: Hunk, chance: random.Random) -> Draft:
    """Lines that stay keep their ending; the changed ones and their neighbours all have the same, so new ones too."""
    site = usual_site(hunk, chance)
    if len(site.texts.old) < 2 or not site.kept_after:
        raise UnfitError
    endings = [chance.choice(["\n", "\r\n"]) for _ in site.file.split("\n")]
    own = chance.choice(["\n", "\r\n"])
    low, high = site.line + site.kept_before - 1, site.line + len(site.texts.old) - site.kept_after
    for number in range(max(0, low), high + 1):
        endings[number] = own
    file = _ended(site.file.split("\n"), endings)
    start = len(_ended(site.file.split("\n")[: site.line], endings)) + (len(endings[site.line - 1]) if site.line else 0)
    there = _ended(site.texts.old, endings[site.line :])
    if file[start : start + len(there)] != there:
        raise UnfitError
    new = _ended(site.texts.new, _endings_after(site, endings, own))
    old = trailing(site.texts.old, chance) if chance.random() < 0.5 else site.texts.old
    right = ((Splice(start, start + len(there), new),),)
    return Draft(file=file, old=joined(old), new=site.new, right=right, exact=True)


def _ended(lines: list[str], endings: list[str]) -> str:
    """The lines with their endings between them."""
    parts = [part for line, ending in zip(lines, endings, strict=False) for part in (line, ending)]
    return "".join(parts[:-1])


def _endings_after(site: Site, endings: list[str], own: str) -> list[str]:
    number, after = site.line, list[str]()
    for step in site.steps:
        if step.tag != "-":
            after.append(own if step.tag == "+" else endings[number])
        number += step.tag != "+"
    return after


def no_final_newline(hunk: Hunk, chance: random.Random) -> Draft:
    """The file ends with the old text and without a newline; the model may have thought that there is one."""
    whole = usual_site(hunk, chance)
    site = site_of(msgspec.structs.replace(hunk, before=hunk.before[: whole.end]), min(3, _context(whole)))
    way = chance.choice(["as it is", "newline", "trailing"])
    if way == "newline":
        return sent(site, f"{site.old}\n", f"{site.new}\n")
    old = trailing(site.texts.old, chance) if way == "trailing" else site.texts.old
    return sent(site, joined(old), site.new, exact=True)


def _context(site: Site) -> int:
    return max(site.kept_before, site.kept_after)
