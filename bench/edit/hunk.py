"""A place that a commit changed, and how a kind of case takes a text from it."""

from typing import Literal, NamedTuple

import msgspec

from bench.edit.case import Encoding, Splice, Splices
from bench.edit.lines import joined, occurs, offset_of

_LONGEST = 45
"""Lines that an old text may have."""
_SHORTEST = 12
"""Characters that it must have: less is in many places."""


class UnfitError(Exception):
    """This hunk does not make such a case."""


Tag = Literal[" ", "-", "+"]


class Step(NamedTuple):
    """A line of a hunk: kept, removed or added."""

    tag: Tag
    line: str


class Hunk(msgspec.Struct, frozen=True):
    """Lines of a file that a commit changed, with nine lines around them."""

    repository: str
    language: str
    path: str
    commit: str
    before: str
    """The whole file as it was."""
    first: int
    """The number of the hunk's first line, from 0."""
    steps: tuple[Step, ...]
    stranger: tuple[Step, ...] = ()
    """A hunk of another file in the same language."""


class Texts(NamedTuple):
    """The lines that a model sends: the old ones and the new ones."""

    old: list[str]
    new: list[str]


class Site(msgspec.Struct, frozen=True):
    """The changed lines and some around them; no other place of the file is like them, but for white space."""

    hunk: Hunk
    steps: tuple[Step, ...]
    line: int
    """The number of the first line, from 0."""
    start: int

    @property
    def file(self) -> str:
        return self.hunk.before

    @property
    def texts(self) -> Texts:
        return texts_of(self.steps)

    @property
    def old(self) -> str:
        return joined(self.texts.old)

    @property
    def new(self) -> str:
        return joined(self.texts.new)

    @property
    def end(self) -> int:
        return self.start + len(self.old)

    @property
    def kept_before(self) -> int:
        """How many lines are kept before the first change."""
        return next(number for number, step in enumerate(self.steps) if step.tag != " ")

    @property
    def kept_after(self) -> int:
        """How many lines are kept after the last change."""
        return next(number for number, step in enumerate(reversed(self.steps)) if step.tag != " ")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind makes of a hunk; without anything right, the edit must be refused."""

    file: str
    old: str
    new: str
    right: tuple[Splices, ...] = ()
    encoding: Encoding = "utf-8"
    replace_all: bool = False
    exact: bool = False
    """Whether the file may hold the old text as it is."""


def texts_of(steps: tuple[Step, ...]) -> Texts:
    return Texts([line for tag, line in steps if tag != "+"], [line for tag, line in steps if tag != "-"])


def around(hunk: Hunk, context: int) -> tuple[int, int]:
    """The steps of a hunk that are changed, with so many around them: from where to before where."""
    changed = [number for number, step in enumerate(hunk.steps) if step.tag != " "]
    return max(0, changed[0] - context), min(len(hunk.steps), changed[-1] + 1 + context)


def site_of(hunk: Hunk, context: int) -> Site:
    """The changed lines with so many around them."""
    low, high = around(hunk, context)
    steps = hunk.steps[low:high]
    line = hunk.first + sum(step.tag != "+" for step in hunk.steps[:low])
    old, new = texts_of(steps)
    if not old or len(old) > _LONGEST or old == new or len(joined(old).strip()) < _SHORTEST:
        raise UnfitError
    site = Site(hunk, steps, line, offset_of(hunk.before, line))
    if hunk.before[site.start : site.end] != site.old or hunk.before.count(site.old) != 1:
        raise UnfitError
    if occurs(old, hunk.before) != 1:
        raise UnfitError
    return site


def sent(site: Site, old: str, new: str, *, exact: bool = False) -> Draft:
    """These texts, that mean exactly the site."""
    return Draft(file=site.file, old=old, new=new, right=(change_of(site),), exact=exact)


def change_of(site: Site) -> Splices:
    """What the commit did."""
    return (Splice(site.start, site.end, site.new),)
