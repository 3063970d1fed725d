"""edit with a text that is not quite in the file: in every encoding and line ending only what is meant changes."""

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail

Rail = Callable[..., Handrail]
BEFORE = """\
# naïve café
class Shop:
\tdef total(self):
\t\tresult = 0
\t\treturn result

\tdef name(self):
\t\treturn 'shop'"""
OLD = "def total(self):  \n    result = 0\n    return result"
NEW = "def total(self):\n    result = 0\n    if result:\n        raise ValueError\n    return result"
AFTER = BEFORE.replace("result = 0\n", "result = 0\n\t\tif result:\n\t\t\traise ValueError\n")
ENCODINGS = {
    "utf-8": ("utf-8", b""),
    "utf-8 with a mark": ("utf-8", codecs.BOM_UTF8),
    "utf-16-le": ("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-16-be": ("utf-16-be", codecs.BOM_UTF16_BE),
    "latin-1": ("latin-1", b""),
}


@pytest.fixture
def one(rail: Rail) -> Handrail:
    return rail(mode="full")


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_every_byte_besides_stays_and_undo_brings_all_back(
    one: Handrail, workspace: Path, name: str, ending: str, last: str
) -> None:
    encoding, mark = ENCODINGS[name]
    before, after = (mark + (text + last).replace("\n", ending).encode(encoding) for text in (BEFORE, AFTER))
    path = workspace / "shop.py"
    path.write_bytes(before)
    result = one.edit("shop.py", OLD, NEW)
    assert result.ok, result.content
    assert path.read_bytes() == after
    assert (result.meta.strategy, result.meta.matched_lines) == ("indentation-flexible", ((3, 5),))
    assert "found but for the indentation" in result.content
    one.undo()
    assert path.read_bytes() == before


def test_in_mixed_endings_kept_lines_keep_theirs_and_new_ones_take_one(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"first\r\nsecond\nthird\r\nfourth\nfifth\r\n")
    assert one.edit("a.txt", "second\nthird \nfourth\nfifth", "second\nnew\nfourth\nadded\nfifth").ok
    assert (workspace / "a.txt").read_bytes() == b"first\r\nsecond\nnew\r\nfourth\nadded\r\nfifth\r\n"


def test_in_mixed_endings_an_exact_edit_leaves_the_lines_it_keeps_too(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\nthree\r\nfour\nfive\r\n")
    assert one.edit("a.txt", "one\ntwo\nthree\nfour\n", "ONE\ntwo\nthree\nmore\nFOUR\n").ok
    assert (workspace / "a.txt").read_bytes() == b"ONE\r\ntwo\nthree\r\nmore\nFOUR\nfive\r\n"


def test_bytes_that_are_no_text_stay_on_lines_that_stay(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("gruen é 漢\n".encode() + b"  odd \xff line\n  next = 1\n")
    assert one.edit("a.txt", "next = 1 \n", "next = 2\n").ok
    assert (workspace / "a.txt").read_bytes() == "gruen é 漢\n".encode() + b"  odd \xff line\n  next = 2\n"


def test_the_result_says_what_was_found_and_where(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n\ttwo = 2\n\tthree = 3\n")
    result = one.edit("a.txt", "two = 2\nthree = 3", "two = 2\nfour = 4")
    assert result.content.startswith("Edited a.txt +1 −1, lines 2–3, found but for the indentation.\n")
    assert (result.data.first_line, result.meta.occurrences) == (3, 1)


def test_all_places_are_replaced_with_a_tolerant_strategy_too(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("  say(“a”)\nx\n\tsay(“a”)\n")
    result = one.edit("a.txt", 'say("a")', 'say("b")', replace_all=True)
    assert (workspace / "a.txt").read_text() == "  say(“b”)\nx\n\tsay(“b”)\n"
    assert (result.meta.strategy, result.meta.occurrences) == ("typography", 2)
    assert result.meta.matched_lines == ((1, 1), (3, 3))


@pytest.mark.parametrize(
    ("old", "new", "first"), [("two", "two\nx", 3), ("two", "x\ntwo", 2), ("two\n", "two\nx\n", 3)]
)
def test_the_first_line_that_is_another_one_is_told(
    one: Handrail, workspace: Path, old: str, new: str, first: int
) -> None:
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    assert one.edit("a.txt", old, new).data.first_line == first
