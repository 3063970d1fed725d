"""Old texts at another depth than the file; the new text is at the depth of the file, of the old text or at a third."""

import random
from collections.abc import Iterator

from bench.edit.hunk import Draft, Hunk, Site, Texts, UnfitError, change_of, sent
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import common_indent, full, indent_of, joined
from bench.edit.slips import indented, retabbed, shifted, step_of


def wrong_old_depth(hunk: Hunk, chance: random.Random) -> Draft:
    """Only the old text is at another depth, or has tabs for spaces."""
    site = usual_site(hunk, chance)
    return sent(site, joined(_misplaced(site.texts.old, site.file, chance)), site.new)


def two_depths(hunk: Hunk, chance: random.Random) -> Draft:
    """Each text is at a depth of its own: what the new lines' depth is in the file, nobody can tell."""
    site = usual_site(hunk, chance)
    old, new = site.texts
    if common_indent(old) != common_indent(new):
        raise UnfitError
    here, step = common_indent(old), step_of(site.file)
    one, other = chance.sample(["", "  ", "   ", "    ", "\t", here + step, here + " "], 2)
    if any(len({depth.expandtabs(width) for depth in (here, one, other)}) < 3 for width in (2, 4, 8)):
        raise UnfitError
    cut = len(here)
    moved = [indented([line[cut:] for line in lines], depth) for lines, depth in ((old, one), (new, other))]
    return Draft(file=site.file, old=joined(moved[0]), new=joined(moved[1]))


def wrapped(hunk: Hunk, chance: random.Random) -> Draft:
    """The edit puts lines into a block; only the old text is at another depth."""
    site, new = _wrap(usual_site(hunk, chance), chance)
    old = _misplaced(site.texts.old, site.file, chance)
    return _replaced(site, Texts(old, new), joined(new))


def wrapped_elsewhere(hunk: Hunk, chance: random.Random) -> Draft:
    """The edit puts lines into a block; both texts are at the same other depth."""
    site, new = _wrap(usual_site(hunk, chance), chance)
    return _replaced(site, shifted(Texts(site.texts.old, new), chance), joined(new))


def _replaced(site: Site, texts: Texts, right: str) -> Draft:
    splice = change_of(site)[0]._replace(text=right)
    return Draft(file=site.file, old=joined(texts.old), new=joined(texts.new), right=((splice,),))


def _misplaced(lines: list[str], file: str, chance: random.Random) -> list[str]:
    """The lines less deep, deeper, or with tabs for spaces."""
    common, step = common_indent(lines), step_of(file)
    slips = [indented(lines, step), indented(lines, "  ")]
    for cut in {len(common), len(step) if common.startswith(step) else 0} - {0}:
        slips += [[line[cut:] if line.strip() else line for line in lines]] * 2
    if any(map(indent_of, lines)):
        slips.append(retabbed(Texts(lines, []), file).old)
    return chance.choice(slips)


def _wrap(site: Site, chance: random.Random) -> tuple[Site, list[str]]:
    """The old lines, some of them in a block."""
    lines = site.texts.old
    runs = list(_runs(lines))
    if not runs or any("\\" in line or '"""' in line for line in lines):
        raise UnfitError
    first, end = chance.choice(runs)
    indent, python = indent_of(lines[first]), site.hunk.language == "python"
    opener, closer = ("if ready_now:", []) if python else ("if (ready_now) {", [f"{indent}}}"])
    inner = indented(lines[first:end], step_of(site.file))
    return site, [*lines[:first], indent + opener, *inner, *closer, *lines[end:]]


def _runs(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Lines that can stand in a block together: none is less deep than the first, nor is the one behind them deeper."""
    numbers = full(lines)
    for first in numbers:
        for last in numbers:
            depths = [indent_of(lines[number]) for number in numbers if first <= number <= last]
            behind = [indent_of(lines[number]) for number in numbers if number > last][:1]
            if depths and all(map(depths[0].__le__, depths)) and not any(len(one) > len(depths[0]) for one in behind):
                yield first, last + 1
