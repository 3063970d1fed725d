"""A difference for the eye: every line of every file, whatever it looks like, on its side."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.edit.diff import build_unified_diff
from handrail.protocol.text import measure_width
from handrail.terminal.diff_view import parse_file_diffs, render_rows

LINES = st.lists(st.sampled_from(["a", "b", "", "-- a/x", "++ b/x", "@@ -1 +1 @@", "\t", "wide 字"]), max_size=10)


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@given(LINES, LINES, LINES)
def test_no_line_of_a_file_passes_for_a_heading(old: list[str], new: list[str], other: list[str]) -> None:
    diffs = [
        build_unified_diff(text_of(old), text_of(new), "one.py"),
        build_unified_diff(None, text_of(other), "two.py"),
    ]
    found = parse_file_diffs("".join(diff.text for diff in diffs))
    assert [one.path for one in found] == [
        path for path, diff in zip(("one.py", "two.py"), diffs, strict=True) if diff.text
    ]
    for one, diff in zip(found, (diff for diff in diffs if diff.text), strict=True):
        assert sum(line.kind == "added" for line in one.lines) == diff.added
        assert sum(line.kind == "removed" for line in one.lines) == diff.removed


@given(LINES, LINES, st.integers(40, 160))
def test_every_row_fits_and_every_line_is_there(old: list[str], new: list[str], width: int) -> None:
    for one in parse_file_diffs(build_unified_diff(text_of(old), text_of(new), "a").text):
        shown = render_rows(one, width)
        assert max(map(measure_width, shown), default=0) <= width
        assert len(shown) >= max(sum(line.kind == kind for line in one.lines) for kind in ("added", "removed"))


def test_a_file_that_goes_and_one_with_an_odd_name_are_named() -> None:
    gone = build_unified_diff("a\n", None, "gone.py").text
    odd = build_unified_diff("a\n", "b\n", 'q"\n').text
    blank = build_unified_diff("a\n", "b\n", "with blank").text
    assert [one.path for one in parse_file_diffs(gone + odd + blank)] == ["gone.py", '"q\\"\\012"', "with blank"]


def test_what_is_cut_says_so() -> None:
    cut = build_unified_diff("", text_of([str(number) for number in range(20_000)]), "a")
    assert parse_file_diffs(cut.text)[0].lines[-1].text.startswith("… ")


def test_old_and_new_stand_side_by_side_on_a_screen_of_120_columns() -> None:
    [one] = parse_file_diffs(build_unified_diff("old\n", "new\n", "a").text)
    assert render_rows(one, 119)[-1].split() == ["1", "-", "old", "│", "1", "+", "new"]
    assert not any("│" in row for row in render_rows(one, 118))
