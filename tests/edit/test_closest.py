"""The closest region is found by what is rare in the text, and the difference is told exactly; whatever the sizes."""

import random
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.edit.closest import align_lines, find_closest_region
from handrail.edit.refusals import LineDifference, build_no_match_error, escape_white_space, list_line_differences

CODE = [
    line
    for number in range(2_000)
    for line in (f"def work_{number}(item):", f"    checked = check(item, {number})", "    return checked", "")
]


def changed(lines: list[str], at: int, line: str | None) -> str:
    copy = list(lines)
    copy[at : at + 1] = [] if line is None else [line]
    return "\n".join(copy)


@pytest.mark.parametrize(
    ("old", "first", "last", "told"),
    [
        (changed(CODE[400:412], 5, "    checked = check(thing, 101)"), 401, 412 - 1, "line 406 has item"),
        (changed(CODE[400:412], 5, None), 401, 411, "line 406 (····checked·=·check(item,·101)) is not in oldText"),
        ("check(item,101)", 406, 406, "line 406 has ·, oldText has nothing"),
        ("def work_77(items):", 309, 309, "line 309 has item, oldText has items"),
        ("\tchecked = check(item, 5)", 22, 22, "line 22 has ····, oldText has →"),
    ],
)
def test_the_region_and_its_first_difference(old: str, first: int, last: int, told: str) -> None:
    region = find_closest_region("\n".join(CODE), old)
    assert region is not None
    assert (region.first, region.last) == (first, last)
    assert told in next(list_line_differences(region)).describe()


def test_every_line_may_differ_a_little() -> None:
    old = "\n".join(f"{line}  # old" if line else line for line in CODE[400:420])
    region = find_closest_region("\n".join(CODE), old)
    assert region is not None
    assert region.first == 401


@given(st.integers(0, 7_980), st.integers(2, 15), st.data())
def test_a_text_with_one_changed_line_is_found_where_it_is(start: int, length: int, data: st.DataObject) -> None:
    lines = CODE[start : start + length]
    full = [number for number, line in enumerate(lines) if "item" in line and (number, line)]
    if len(full) < 2:
        return
    at = data.draw(st.sampled_from(full))
    old = changed(lines, at, lines[at].replace("item", "thing"))
    region = find_closest_region("\n".join(CODE), old)
    assert region is not None
    assert region.first <= start + at + 1 <= region.last
    assert [each.line for each in list_line_differences(region)] == [start + at + 1]


texts = st.lists(st.sampled_from(["a", "b", "", " a", "x y", "x  y"]), max_size=12)


@given(texts, texts)
def test_lines_beside_each_other_keep_their_order_and_none_is_lost(wanted: list[str], lines: list[str]) -> None:
    pairs = align_lines(wanted, lines)
    assert [i for i, _ in pairs if i is not None] == list(range(len(wanted)))
    there = [j for _, j in pairs if j is not None]
    assert there == list(range(len(there)))


def test_white_space_is_made_visible() -> None:
    assert escape_white_space("a\tb c\r\n") == "a→b·c␍␤"
    assert escape_white_space("\u00a0\u200b\x1b") == "<U+00A0><U+200B><U+001B>"
    assert escape_white_space("x" * 100, 10) == "xxxxxxxxx…"


LONG = "a b " * 250_000
WIDE = "\n".join([f"alphaword part of line {LONG}"] * 12 + [LONG] * 4)


@pytest.mark.parametrize(
    "old", ["alphaword part of line\nzork blim blam", "alphaword zork\nblim\nblam\nblom\nblum", f"{LONG}c\n{LONG}d\n"]
)
def test_of_lines_that_are_megabytes_only_a_part_is_compared(old: str) -> None:
    """Every region of them is ten times what may be used in all."""
    tracemalloc.start()
    try:
        find_closest_region(WIDE, old)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < len(old) * 4 + 10_000_000


@pytest.mark.parametrize("size", [1_000, 600_000])
def test_in_a_line_that_is_the_whole_file_the_part_around_the_hit_is_compared(size: int) -> None:
    text = "var a=1;" * size + "function foo(bar){return bar+baz(1)}" + "var b=2;" * size
    region = find_closest_region(text, "function foo(bar){return bar+bazz(1)}")
    assert region is not None
    assert next(list_line_differences(region)).describe() == "line 1 has baz, oldText has bazz"


@pytest.mark.parametrize("before", [1, 100_000])
def test_in_a_line_that_is_the_whole_file_the_closest_part_is_told(before: int) -> None:
    text = "function aa(x){return 1};" * before + "function foo(bar){return bar+baz(1)}" + "function foo(){};" * 9
    region = find_closest_region(text, "function foo(bar){return bar+bazz(1)}")
    assert region is not None
    assert next(list_line_differences(region)).describe() == "line 1 has baz, oldText has bazz"


@pytest.mark.parametrize(
    ("file", "old", "only"),
    [("a  b", "a b", True), ("a b", "a c", False), ("  ", None, True), ("x", None, False)],
)
def test_whether_only_white_space_differs(file: str, old: str | None, only: bool) -> None:
    assert LineDifference(1, file, old).only_space is only


@pytest.mark.parametrize(("old", "only"), [("", True), (" \t", True), ("x", False)])
def test_a_line_that_is_not_there_is_more_than_white_space(old: str, only: bool) -> None:
    assert LineDifference(None, "", old).only_space is only


@pytest.mark.parametrize("digits", [10, 5_000])
def test_a_number_that_no_line_has_is_not_taken_for_one(digits: int) -> None:
    error = build_no_match_error("foo\n", "1" * digits + "\tfoo", "bar", "file")
    assert error.code == "NO_MATCH"
    assert "line numbers" not in error.message


chance = random.Random(5)
WORST: dict[str, Callable[[], tuple[str, str]]] = {
    "a line that is everywhere": lambda: ("a\n" * 4_000_000, "a\nb\n" * 5_000),
    "nothing but newlines": lambda: ("\n" * 8_000_000, "\n\n x\n" * 500),
    "one long line": lambda: ("x" * 5_000_000, "x" * 100 + "y" * 400),
    "two words": lambda: ("foo bar " * 625_000, "foo  bar foo bar baz"),
    "beginnings that never end": lambda: ("ab" * 2_500_000, "\n".join("ab" * 100 + "c" for _ in range(500))),
    "chance": lambda: ("".join(chance.choices("ab\n", k=5_000_000)), "".join(chance.choices("ab\n", k=5_000)) + "c"),
    "what a regular expression would choke on": lambda: ("a" * 5_000_000, "(a+)+$\n.*" * 500),
    "a long text that is not there": lambda: ("one\n", "two\n" * 2_000_000),
    "numbers at every line": lambda: ("x\n", "\n".join(f"{number}: y" for number in range(300_000))),
}


@pytest.mark.parametrize("kind", WORST)
def test_a_refusal_comes_and_is_short_whatever_the_texts(kind: str) -> None:
    text, old = WORST[kind]()
    error = build_no_match_error(text, old, "new", "file")
    assert error.code == "NO_MATCH"
    assert len(error.message) < 1_000


def test_a_short_line_with_another_number_is_close() -> None:
    found = find_closest_region("def a():\n    return 1\n", "return 2")
    assert found is not None
    assert (found.first, found.lines) == (2, ["    return 1"])
