"""Takes the hunks of a unified diff back out of a text that has changed since, where they still are as they were."""

from collections.abc import Iterator
from typing import NamedTuple


class TakenBack(NamedTuple):
    """The text without the hunks that were found, and how many were and were not."""

    text: str
    done: int
    left: int


class _Hunk(NamedTuple):
    old: list[str]
    new: list[str]


def take_back(diff: str, text: str) -> TakenBack | None:
    """Puts each hunk's old lines in the place of its new ones, where those, with the lines around them, are in the
    text exactly once. None when the diff is no whole one."""
    hunks = list(_hunks(diff))
    if not hunks:
        return None
    lines, done = _lines(text), 0
    for hunk in hunks:
        places = list(_places(lines, hunk.new))
        if len(places) == 1:
            lines[places[0] : places[0] + len(hunk.new)] = hunk.old
            done += 1
    return TakenBack("".join(lines), done, len(hunks) - done)


def _hunks(diff: str) -> Iterator[_Hunk]:
    """The hunks; none of a diff that is cut off at its end, or is only a note."""
    lines = diff.split("\n")
    if not diff.startswith("--- ") or lines[-2].startswith("… "):
        return
    hunk = _Hunk([], [])
    for number, line in enumerate(lines[2:-1], start=3):
        if line.startswith("@@ "):
            if hunk.old or hunk.new:
                yield hunk
            hunk = _Hunk([], [])
        elif not line.startswith("\\"):
            _add(hunk, line, end="" if lines[number].startswith("\\") else "\n")
    yield hunk


def _add(hunk: _Hunk, line: str, end: str) -> None:
    if not line.startswith("+"):
        hunk.old.append(f"{line[1:]}{end}")
    if not line.startswith("-"):
        hunk.new.append(f"{line[1:]}{end}")


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    lines = [f"{line}\n" for line in lines]
    return [*lines, last] if last else lines


def _places(lines: list[str], part: list[str]) -> Iterator[int]:
    """Where the lines of a part follow one another."""
    if not part:
        return
    for start in range(len(lines) - len(part) + 1):
        if lines[start] == part[0] and lines[start : start + len(part)] == part:
            yield start
