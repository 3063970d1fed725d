"""Where a line of a file comes from: followed back through every change, those of others included."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail, UsageError
from handrail.changes.blame import apply_diff, find_old_line, split_text_lines
from handrail.edit.diff import build_unified_diff
from handrail.protocol.errors import ToolError
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.store import change_log


@pytest.fixture
def one(workspace: Path, tmp_path: Path):
    settings = Settings(mode="full", tools=Tools(enable=("delete",)))
    with Handrail(workspace, session="one", state_dir=tmp_path / "state", settings=settings) as rail:
        yield rail


def made(rail: Handrail, path: str, line: int) -> tuple[str, int | None, int]:
    """How a line came there, by which change, and which line it was then."""
    origin = rail.line_origin(path, line)[2]
    return origin.kind, origin.entry.number if origin.entry else None, origin.line


def test_a_line_is_followed_through_what_was_changed_around_it(one: Handrail) -> None:
    one.write("a.txt", "one\ntwo\nthree\n")
    one.edit("a.txt", "two\n", "zero\nTWO\n")
    one.edit("a.txt", "one\n", "first\none\n")
    assert [made(one, "a.txt", line) for line in range(1, 6)] == [
        ("made", 3, 1),
        ("made", 1, 1),
        ("made", 2, 2),
        ("made", 2, 3),
        ("made", 1, 3),
    ]


def test_a_line_that_was_there_before_is_said_to_be_older(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    assert made(one, "a.txt", 1) == ("before", None, 1)
    one.read("a.txt")
    one.edit("a.txt", "two\n", "zwei\n")
    assert (made(one, "a.txt", 1), made(one, "a.txt", 2)) == (("before", None, 1), ("made", 1, 2))


def test_what_others_changed_is_told_apart_and_told(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "one\ntwo\nthree\n")
    (workspace / "a.txt").write_text("new\none\nTWO\nthree\n")
    assert made(one, "a.txt", 1) == ("outside", 1, 1)
    assert made(one, "a.txt", 3) == ("outside", 1, 3)
    real, text, origin = one.line_origin("a.txt", 4)
    assert (real, text, origin.kind, origin.line, origin.outside) == ("a.txt", "three", "made", 3, (1,))
    one.read("a.txt")
    one.edit("a.txt", "three\n", "drei\n")
    assert (made(one, "a.txt", 4), made(one, "a.txt", 3)) == (("made", 2, 4), ("outside", 1, 3))


def test_a_file_that_others_made_anew_is_theirs(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "one\n")
    one.delete("a.txt")
    (workspace / "a.txt").write_text("one\n")
    assert made(one, "a.txt", 1) == ("outside", 2, 1)


def test_what_an_undo_brought_back_is_what_it_was_before(one: Handrail) -> None:
    one.write("a.txt", "one\ntwo\n")
    one.edit("a.txt", "two\n", "zwei\n")
    one.undo()
    origin = one.line_origin("a.txt", 2)[2]
    assert (origin.kind, origin.entry.number if origin.entry else 0, origin.brought_back) == ("made", 1, (3,))
    one.redo()
    assert made(one, "a.txt", 2)[:2] == ("made", 2)


def test_a_file_is_followed_under_the_name_it_had(one: Handrail) -> None:
    one.write("a.txt", "one\ntwo\n")
    moved = one.exec("mv a.txt b.txt")
    assert moved.ok
    if moved.meta.undo is None:
        pytest.skip("commands have no layer here")
    origin = one.line_origin("b.txt", 2)[2]
    assert (origin.kind, origin.path, origin.entry.number if origin.entry else 0) == ("made", b"a.txt", 1)


def test_what_is_not_kept_any_more_is_said_to_be_lost(workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    with Handrail(workspace, mode="full", session="one", state_dir=tmp_path / "state") as rail:
        rail.read("a.txt")
        rail.edit("a.txt", "one\n", "one\ntwo\n")
    contents = [kept for folder in tmp_path.glob("state/**/blobs") for kept in folder.rglob("*") if kept.is_file()]
    assert contents
    for kept in contents:
        kept.unlink()
    with Handrail(workspace, session="one", state_dir=tmp_path / "state") as rail:
        assert made(rail, "a.txt", 1) == ("lost", 1, 1)


MISTAKES = [("missing.txt", 1, "NOT_FOUND"), ("a.txt", 3, "NOT_FOUND"), ("a.bin", 1, "BINARY_FILE")]


@pytest.mark.parametrize(("path", "line", "code"), MISTAKES)
def test_where_there_is_no_such_line_it_says_so(
    one: Handrail, workspace: Path, path: str, line: int, code: str
) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    (workspace / "a.bin").write_bytes(b"\0\1\2")
    with pytest.raises(ToolError) as raised:
        one.line_origin(path, line)
    assert raised.value.code == code
    with pytest.raises(UsageError):
        one.line_origin("a.txt", 0)


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-- x", "++ y"]), max_size=12)


@given(LINES, LINES)
def test_a_line_that_is_followed_is_the_same_line(old: list[str], new: list[str]) -> None:
    for line, text in enumerate(new):
        was = find_old_line(old, new, line)
        assert was is None or old[was] == text


@given(LINES, LINES)
def test_what_a_change_left_is_found_again_by_its_difference(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    assert apply_diff(old, build_unified_diff(before, after, "a").text) == new


def test_a_difference_that_is_cut_says_nothing() -> None:
    old = [str(number) for number in range(30_000)]
    diff = build_unified_diff("\n".join(old), "\n".join(reversed(old)), "a")
    assert diff.truncated
    assert apply_diff(old, diff.text) is None
    assert split_text_lines(b"\0\1") is None


def test_a_line_of_a_file_that_was_changed_often_is_found_by_reading_each_change_once(one: Handrail) -> None:
    one.write("a.txt", "first\n")
    for number in range(150):
        one.write("a.txt", f"first\n{number}\n")
    change_log._read_record.cache_clear()
    assert made(one, "a.txt", 1) == ("made", 1, 1)
    assert change_log._read_record.cache_info().misses <= 151
