"""Which lines belong to a line: those that are further in, up to what closes them."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

_CLOSERS = ("}", ")", "]", "end")
_OPENERS = ("{", "(", "[", ":", "=>", "do", "then")


class IndentBlock(NamedTuple):
    """What belongs to a line."""

    end: int
    """Behind its last line; where nothing belongs to the line, behind the last one that is beside it."""
    alone: bool
    """Whether nothing belongs to the line."""


def parse_indent_blocks(lines: Sequence[str]) -> list[IndentBlock]:
    """The block of every line. Each is looked at once."""
    groups: list[_BlockGroup] = [_BlockGroup(-1, len(lines))] * len(lines)
    still_open: list[_BlockGroup] = [_BlockGroup(-1, len(lines))]  # the outermost first
    for number, line in enumerate(lines):
        words = line.strip()
        if words:
            groups[number] = _placed(still_open, number, words, _indentation(line))
    for group in still_open:
        group.end = len(lines)
    return [_block(group) for group in groups]


class _BlockGroup(msgspec.Struct):
    """A line, and those at its depth that go on with what it opened."""

    depth: int
    end: int
    around: "_BlockGroup | None" = None
    opens: bool = False


def _placed(still_open: list[_BlockGroup], number: int, words: str, depth: int) -> _BlockGroup:
    """The group of the next line. What it ends is open no more."""
    outer = bisect_left(still_open, depth, key=lambda group: group.depth)
    around = still_open[outer - 1]
    if words.startswith("#"):  # a comment, or what a preprocessor reads, may stand anywhere and ends nothing
        return _BlockGroup(depth, number + 1, around)
    beside = next((group for group in still_open[outer:] if group.depth == depth), None)
    closes = words.startswith(_CLOSERS) or words == "{"
    for ended in still_open[outer:]:
        ended.end = number + (closes and ended is beside)
    del still_open[outer:]
    if beside is None or not (closes and words.endswith(_OPENERS)):
        beside = _BlockGroup(depth, number + 1, around)
    else:
        beside.opens = True
    around.opens = True
    still_open.append(beside)
    return beside


def _block(group: _BlockGroup) -> IndentBlock:
    if group.opens or group.around is None:
        return IndentBlock(group.end, alone=False)
    return IndentBlock(group.around.end, alone=True)


def _indentation(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(8))
