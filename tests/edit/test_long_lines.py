"""A line can be the whole file, as minified ones are: it is not searched anew for each place in it."""

import random
from collections.abc import Callable
from typing import SupportsIndex

import pytest

from handrail.edit.diff import build_edit_diff
from handrail.edit.lines import (
    Replacement,
    apply_replacements,
    normalize_newlines,
)
from handrail.workspace.lossless_text import LosslessText
from handrail.workspace.text import detect_line_ending

PLACES = 2_000
LINE = "x" + "y" * 49


class Watched(str):
    """A text that counts the characters which are searched in it."""

    __slots__ = ("searched",)

    def __init__(self, _: str) -> None:
        self.searched = 0

    def find(self, sub: str, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /) -> int:
        at = super().find(sub, start, end)
        stop = len(self) if end is None else int(end)
        self.searched += (stop if at < 0 else at) - int(start or 0)
        return at

    def rfind(self, sub: str, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /) -> int:
        at = super().rfind(sub, start, end)
        self.searched += (len(self) if end is None else int(end)) - max(at, 0)
        return at


TEXTS: dict[str, Callable[[], str]] = {
    "one line": lambda: LINE * PLACES,
    "one line that ends": lambda: LINE * PLACES + "\n",
    "a long line between short ones": lambda: "x\n" * 5 + LINE * PLACES + "\n" + "x\n" * 5,
    "two long lines": lambda: f"{LINE * (PLACES // 2)}\n" * 2,
    "long lines with room between": lambda: f"{LINE * (PLACES // 4)}{chr(10) * 9}" * 4,
    "lines of one place": lambda: f"{LINE}\n" * PLACES,
}


@pytest.mark.parametrize("kind", TEXTS)
def test_lines_are_searched_a_few_times_however_many_places_are_in_them(kind: str) -> None:
    text = Watched(TEXTS[kind]())
    places = [at for at, character in enumerate(text) if character == "x"]
    assert build_edit_diff(text, [Replacement(at, at + 1, "z") for at in places], "f").text
    assert text.searched < 30 * len(text)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_ending_of_a_line_is_looked_for_once(end: str) -> None:
    raw = Watched(f"a\r\nb\n{LINE * PLACES}{end}")
    text = normalize_newlines(raw)
    wanted = [Replacement(at, at + 1, "\n") for at, character in enumerate(text) if character == "x"]
    own = list(LosslessText(b"", raw, "utf-8", "mixed").restore_newlines(text, wanted, "\n"))
    assert {part.text for part in own} == {end or "\n"}
    assert raw.searched < 4 * len(raw)


def test_new_lines_take_the_ending_of_the_line_they_are_put_into() -> None:
    raw = "one x x\r\ntwo x x\nthree x\r\nx"
    text = normalize_newlines(raw)
    wanted = [Replacement(at, at + 1, "1\n2") for at, character in enumerate(text) if character == "x"]
    file = LosslessText(b"", raw, "utf-8", detect_line_ending(raw))
    made = apply_replacements(raw, list(file.restore_newlines(text, wanted, "\n")))
    assert made == (
        "one 1\r\n2 1\r\n2\r\n"  # both places of the first line
        "two 1\n2 1\n2\n"
        "three 1\r\n2\r\n"
        "1\r\n2"  # behind the last newline: as the line before
    )


def test_a_diff_of_many_places_in_a_line_counts_as_before() -> None:
    chance = random.Random(3)
    text = "".join(chance.choices("xy\n", weights=(5, 90, 2), k=5_000))
    wanted = [Replacement(at, at + 1, "z") for at, character in enumerate(text) if character == "x"]
    lines = sum("x" in line for line in text.split("\n"))
    diff = build_edit_diff(text, wanted, "f")
    assert (diff.added, diff.removed) == (lines, lines)
