"""Edits that could take long: a text for which everything is tried in vain, and files made to be hard to search."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.edit.lines import joined
from bench.measure import Row, measure
from handrail import Handrail

IN_VAIN_MILLISECONDS = 100.0
WORST_MILLISECONDS = 2_000.0
_LINES = 10_000
_NAMES = itertools.count()
"""Every edit has a file of its own: one that was written anew behind the session's back would be refused at once."""


class Hard(NamedTuple):
    """A file and an old text; whether there is a place for it is not what is asked."""

    name: str
    file: str
    old: str
    replace_all: bool = False


def in_vain(rail: Handrail, workspace: Path, lines: Sequence[str]) -> Iterator[Row]:
    """Old texts of one line and of many, every line of them with a name that the file does not have."""
    for count in (1, 30, 300):
        at = len(lines) // 2
        old = joined(line.replace("(", "_gone(") for line in lines[at : at + count])
        hard = Hard("", joined(lines), old)
        times = sorted(_taken(rail, workspace, hard, refused=True) for _ in range(9))
        name = f"everything in vain, {count} of {len(lines)} lines, median"
        yield Row(name, times[len(times) // 2] * 1e3, "ms", IN_VAIN_MILLISECONDS)


def worst(rail: Handrail, workspace: Path) -> Iterator[Row]:
    for hard in _hard():
        slowest = max(_taken(rail, workspace, hard) for _ in range(3))
        yield Row(f"{hard.name}, slowest", slowest * 1e3, "ms", WORST_MILLISECONDS)


def _taken(rail: Handrail, workspace: Path, hard: Hard, *, refused: bool = False) -> float:
    path = workspace / f"hard-{next(_NAMES)}.txt"
    path.write_text(hard.file)

    def edit() -> None:
        result = rail.edit(path.name, hard.old, "something else", replace_all=hard.replace_all)
        if refused and result.ok:
            raise AssertionError(f"not the refusal that is measured: {result.summary}")

    seconds = measure(edit, 1)
    path.unlink()
    return seconds


def _hard() -> Iterator[Hard]:
    yield from _equal_lines()
    yield from _one_line()
    yield from _alike()
    yield from _patterns()


def _equal_lines() -> Iterator[Hard]:
    line = "    total = count(total)"
    file = f"{line}\n" * _LINES
    yield Hard("10,000 equal lines, 50 of them but for space", file, joined([f"{line}  "] * 50))
    yield Hard("10,000 equal lines, replaceAll", file, joined([f"{line}  "] * 50), replace_all=True)
    yield Hard("10,000 equal lines, another indentation", file, joined([line.strip()] * 50))
    yield Hard("10,000 equal lines, one that is not there", file, joined([line] * 25 + ["gone"] + [line] * 25))
    yield Hard("10,000 equal lines, 20 elided middles", file, joined([f"{line} ", "    ..."] * 20 + [line]))
    yield Hard("10,000 equal lines, line numbers", file, joined(f"{number:6d}\t{line}" for number in range(1, 51)))
    yield Hard("10,000 blank lines", " \n" * _LINES, "\n" * 50 + "gone" + "\n" * 50)


def _one_line() -> Iterator[Hard]:
    words = "count total " * 85_000
    yield Hard("a part of one line of 1 MB, but for space", words, "count  total " * 500)
    yield Hard("a part of one line of 1 MB that is not there", words, "count total " * 500 + "gone")
    yield Hard("one letter a million times", "a" * 1_000_000, "a" * 5_000 + "b")
    yield Hard("a megabyte of escaped newlines", "total\\n" * 150_000, "total\n" * 500)
    yield Hard("a megabyte of quotes", '"it\'s" ' * 145_000, "“it’s”  " * 500)


def _alike() -> Iterator[Hard]:
    squashed = [f"{' ' * (number % 40)}a{' ' * (number % 7)} b\t c" for number in range(_LINES)]
    yield Hard("10,000 lines that are one but for space", joined(squashed), joined(["a b c"] * 50))
    yield Hard(
        "10,000 lines that are one but for space, replaceAll",
        joined(squashed),
        joined(["a  b c"] * 50),
        replace_all=True,
    )
    block = "def order_{0}(item):\n    check(item)\n    total = rate(item, {0})\n    return total\n"
    twins = joined(block.format(number) for number in range(_LINES // 5))
    yield Hard("2,000 near twins", twins, block.format("gone"))
    yield Hard("100 near twins in a row", twins, joined(block.format(f"{number}_gone") for number in range(100)))
    nested = joined(f"{' ' * depth}if total:" for depth in range(1_400))
    yield Hard("a megabyte of ever deeper lines", nested, joined(["if total: "] * 50))


def _patterns() -> Iterator[Hard]:
    pattern = r"^((a+)+)+$ .*.*.*[^\]]*(?:\d{3}|\w+?)*\\(?=.*x) \1 {2,}"
    yield Hard("10,000 regular expressions, but for space", f"{pattern}\n" * _LINES, joined([f"{pattern} "] * 50))
    yield Hard("one that would never end", "a" * 100_000 + "\n" + pattern, r"((a+)+)+$" + " " * 1_000 + "b")
    yield Hard("a hundred thousand spaces", " " * 100_000 + "\n" + "x", "x" + " " * 50_000 + "\nx")
