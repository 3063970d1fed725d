"""Unified diffs as the pieces that an editor shows: for every file the lines before and after, and where they are."""

from collections.abc import Iterator
from itertools import groupby, pairwise

import msgspec
from msgspec.structs import replace

from handrail import parse_diff

_LEFT_OUT = "⋯ {} lines ⋯\n"


class DiffSegment(msgspec.Struct, frozen=True):
    """One place in one file, or all places of it, one after the other."""

    path: str
    """As results name it."""
    line: int
    """The first line that is another one now; 0 in a file that is gone."""
    old: str | None
    """None where there was no file."""
    new: str
    begin: int
    """The line that `new` begins with."""
    file: int
    """Which file of the diff it is, from 1 on. One path may be two of them: it went, and came again."""


def parse_diff_files(diff: str) -> Iterator[DiffSegment]:
    """The files of a diff that handrail made, in order, each with all its hunks: some editors show of a call only the
    first difference, and nobody should take a part of a change for all of it. Where lines are left out between two
    hunks a line says how many, the same before and after."""
    for _, hunks in groupby(parse_diff_hunks(diff), lambda hunk: hunk.file):
        yield _joined(list(hunks))


def parse_diff_hunks(diff: str) -> Iterator[DiffSegment]:
    """The hunks one by one. Remarks are passed over. A truncated hunk has as many lines as there are."""
    for hunk in parse_diff(diff)[0]:
        old, new = None if hunk.creates_file else "".join(hunk.old), "".join(hunk.new)
        first = hunk.range.new_line
        changed = min(first + hunk.unchanged, first + max(0, new.count("\n") - 1))
        yield DiffSegment(hunk.path, changed, old, new, first, hunk.file)


def _joined(hunks: list[DiffSegment]) -> DiffSegment:
    first = hunks[0]
    old, new = first.old or "", first.new
    for before, hunk in pairwise(hunks):
        gap = _LEFT_OUT.format(hunk.begin - before.begin - before.new.count("\n"))
        old, new = f"{old}{gap}{hunk.old}", f"{new}{gap}{hunk.new}"
    return replace(first, old=None if first.old is None else old, new=new)
