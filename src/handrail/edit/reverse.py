"""Reverses hunks in a text that has changed since."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? ")


class ReversedText(NamedTuple):
    """The text without the hunks that were found, and how many were and were not."""

    text: str
    done: int
    left: int


class _Hunk(NamedTuple):
    line: int
    """Where its old lines begin, from 0."""
    old: str
    new: str


def reverse_hunks(diff: str, before: str, text: str) -> ReversedText | None:
    """Puts each hunk's old lines in the place of its new ones, where those, with the lines around them, are in the
    text exactly once, and were so when the diff was made of `before`. None when the diff is no whole one."""
    hunks = list(_hunks(diff))
    after = _applied(hunks, before)
    if not hunks or after is None:
        return None
    done = 0
    for hunk in hunks:
        place = _only_place(text, hunk.new)
        if place is None or _only_place(after, hunk.new) is None or not _fits(hunk, place, text):
            continue
        text = f"{text[:place]}{hunk.old}{text[place + len(hunk.new) :]}"
        done += 1
    return ReversedText(text, done, len(hunks) - done)


def _hunks(diff: str) -> Iterator[_Hunk]:
    """The hunks; none of a diff that is cut off at its end, or is only a note."""
    lines = diff.split("\n")
    if not diff.startswith("--- ") or lines[-2].startswith("… "):
        return
    starts = [number for number, line in enumerate(lines) if line.startswith("@@ ")]
    for start, end in zip(starts, [*starts[1:], len(lines) - 1], strict=True):
        found = _HEADER.match(lines[start])
        if found is None:
            return
        empty = found[2] == "0"  # then the number is that of the line before
        yield _Hunk(int(found[1]) - (not empty), *_sides(lines[start + 1 : end]))


def _sides(lines: list[str]) -> tuple[str, str]:
    old: list[str] = []
    new: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("\\"):
            continue
        end = "" if following.startswith("\\") else "\n"
        text = f"{line[1:]}{end}"
        if not line.startswith("+"):
            old.append(text)
        if not line.startswith("-"):
            new.append(text)
    return "".join(old), "".join(new)


def _applied(hunks: list[_Hunk], before: str) -> str | None:
    """The text that the diff made; None when it is not of this one."""
    lines = _split(before)
    made: list[str] = []
    at = 0
    for hunk in hunks:
        made += lines[at : hunk.line]
        length = hunk.old.count("\n") + (bool(hunk.old) and not hunk.old.endswith("\n"))
        if "".join(lines[hunk.line : hunk.line + length]) != hunk.old:
            return None
        made.append(hunk.new)
        at = hunk.line + length
    return "".join((*made, *lines[at:]))


def _split(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _only_place(text: str, part: str) -> int | None:
    """Where whole lines are in a text, if they are there once."""
    place = _next_place(text, part, 0)
    return None if place is None or _next_place(text, part, place + 1) is not None else place


def _next_place(text: str, part: str, start: int) -> int | None:
    if not part:
        return None
    while (place := text.find(part, start)) >= 0:
        end = place + len(part)
        if (place == 0 or text[place - 1] == "\n") and (part.endswith("\n") or end == len(text)):
            return place
        start = place + 1
    return None


def _fits(hunk: _Hunk, place: int, text: str) -> bool:
    """Lines that end without a newline can only be put at the end."""
    return hunk.old.endswith("\n") or not hunk.old or place + len(hunk.new) == len(text)
