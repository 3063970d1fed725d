"""White space that is not as the file has it."""

import random
import re

from bench.edit.case import Splice
from bench.edit.hunk import Draft, Hunk, Site, Texts, UnfitError, sent
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import indent_of, joined, offset_of, squashed
from bench.edit.slips import retabbed, shifted, spaced, trailing

_PART = re.compile(r"\w+|\s+|[^\w\s]")


def trailing_space(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    return sent(site, joined(trailing(site.texts.old, chance)), site.new)


def tabs_for_spaces(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    old, new = retabbed(site.texts, site.file)
    return sent(site, joined(old), joined(new))


def other_indentation(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    old, new = shifted(site.texts, chance)
    return sent(site, joined(old), joined(new))


def first_line_indent(hunk: Hunk, chance: random.Random) -> Draft:
    """The first line's indentation is lost; what is left may well be in the file as it is."""
    site = usual_site(hunk, chance)
    old, new = _without_indent(site, 0)
    return sent(site, joined(old), joined(new), exact=True)


def last_line_indent(hunk: Hunk, chance: random.Random) -> Draft:
    site = usual_site(hunk, chance)
    if len(site.texts.old) < 2:
        raise UnfitError
    old, new = _without_indent(site, -1)
    return sent(site, joined(old), joined(new))


def _without_indent(site: Site, number: int) -> Texts:
    """One line of both texts without its indentation, which must be the same in both."""
    old, new = site.texts
    if not new or not old[number].strip() or not new[number].strip():
        raise UnfitError
    if not indent_of(old[number]) or indent_of(old[number]) != indent_of(new[number]):
        raise UnfitError
    old[number], new[number] = old[number].lstrip(), new[number].lstrip()
    return Texts(old, new)


def inner_space(hunk: Hunk, chance: random.Random) -> Draft:
    """More or less white space inside a line, in both texts where both have that line."""
    site = usual_site(hunk, chance)
    steps = list(site.steps)
    among = [number for number, step in enumerate(steps) if step.tag != "+" and spaced(step.line, chance)]
    if not among or len(site.texts.old) < 2:
        raise UnfitError
    number = chance.choice(among)
    line = spaced(steps[number].line, chance) or ""
    old = [line if at == number else step.line for at, step in enumerate(steps) if step.tag != "+"]
    both = chance.random() < 0.5
    new = [line if at == number and both else step.line for at, step in enumerate(steps) if step.tag != "-"]
    return sent(site, joined(old), joined(new))


def part_of_a_line(hunk: Hunk, chance: random.Random) -> Draft:
    """A part of one line, with white space inside it that is not as the file has it."""
    number, before, after = _changed_line(hunk, chance)
    fragment, replacement = _fragments(before, after, chance)
    slipped = spaced(fragment, chance)
    if slipped is None or squashed(hunk.before).count(squashed(fragment)) != 1:
        raise UnfitError
    start = offset_of(hunk.before, number) + before.index(fragment)
    if hunk.before[start : start + len(fragment)] != fragment:
        raise UnfitError
    right = (Splice(start, start + len(fragment), replacement),)
    return Draft(file=hunk.before, old=slipped, new=replacement, right=(right,))


def _changed_line(hunk: Hunk, chance: random.Random) -> tuple[int, str, str]:
    """A line that one other line replaces: its number, from 0, and both."""
    tags = "".join(step.tag for step in hunk.steps)
    found = [match.start() + 1 for match in re.finditer(r"(?= -\+ )", tags)]
    if not found:
        raise UnfitError
    at = chance.choice(found)
    number = hunk.first + sum(step.tag != "+" for step in hunk.steps[:at])
    return number, hunk.steps[at].line, hunk.steps[at + 1].line


def _fragments(before: str, after: str, chance: random.Random) -> tuple[str, str]:
    """What differs between two lines and some parts around it, the same ones in both."""
    one, other = _PART.findall(before), _PART.findall(after)
    least = min(len(one), len(other))
    head = next((at for at in range(least) if one[at] != other[at]), least)
    tail = next((at for at in range(least - head) if one[-1 - at] != other[-1 - at]), least - head)
    low = max(0, head - chance.randint(1, 4))
    high = max(0, tail - chance.randint(1, 4))
    fragment, replacement = ("".join(parts[low : len(parts) - high]) for parts in (one, other))
    if fragment.strip() in {"", before.strip()} or fragment != fragment.strip() or not replacement.strip():
        raise UnfitError
    if replacement != replacement.strip() or len(fragment) < 8:
        raise UnfitError
    return fragment, replacement
