"""The maker of edit cases: what it takes from a history, and what it makes of that."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.edit.case import Case, Expectation, Splice, read_cases, write_cases
from bench.edit.history import harvest
from bench.edit.hunk import Hunk, Texts, UnfitError, texts_of
from bench.edit.kinds import KINDS
from bench.edit.lines import common_indent
from bench.edit.maker import cases_of
from bench.edit.names import misspelt, unlike
from bench.edit.slips import curly, dedented, numbered, retabbed, spaced


def test_a_hunk_is_what_its_commit_changed(repository: Path, hunks: list[Hunk]) -> None:
    assert len(hunks) == 18
    for hunk in hunks:
        old, new = texts_of(hunk.steps)
        lines = hunk.before.split("\n")
        assert lines[hunk.first : hunk.first + len(old)] == old
        after = [*lines[: hunk.first], *new, *lines[hunk.first + len(old) :]]
        shown = ["git", "-C", str(repository), "show", f"{hunk.commit}:{hunk.path}"]
        assert "\n".join(after) == subprocess.run(shown, capture_output=True, check=True, text=True).stdout


def test_every_kind_finds_something_in_a_small_history(cases: list[Case]) -> None:
    assert KINDS.keys() - {case.kind for case in cases} == set()


def test_what_must_be_refused_is_named_so(cases: list[Case]) -> None:
    assert {case.positive for case in cases} == {True, False}
    assert all(case.positive != case.kind.startswith("neg_") for case in cases)


def test_every_right_result_changes_the_file(cases: list[Case]) -> None:
    for case in cases:
        if case.positive:
            assert case.right
            assert case.before not in case.right, case.id


def test_the_encodings_are_those_of_the_files(cases: list[Case]) -> None:
    by_kind = {case.kind: case.before for case in cases}
    assert by_kind["byte_order_mark"].startswith(b"\xef\xbb\xbf")
    assert by_kind["utf_16"][:2] in {b"\xff\xfe", b"\xfe\xff"}
    for kind in ("latin_1", "stray_byte"):
        with pytest.raises(UnicodeDecodeError):
            by_kind[kind].decode()
    assert not by_kind["stray_byte"].decode(errors="ignore").isascii()
    assert b"\r\n" in by_kind["mixed_endings"]
    assert by_kind["mixed_endings"].replace(b"\r\n", b"").count(b"\n")
    assert not by_kind["no_final_newline"].endswith(b"\n")


def test_the_same_seed_makes_the_same_cases_and_another_one_others(repository: Path, hunks: list[Hunk]) -> None:
    again = harvest(str(repository / ".git"), "python", 100, random.Random(1))
    assert [hunk.commit + hunk.path for hunk in again] == [hunk.commit + hunk.path for hunk in hunks]
    one, same, other = (list(cases_of([hunks], 1, seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_cases_are_read_as_they_were_written(tmp_path: Path, cases: list[Case]) -> None:
    assert write_cases(tmp_path / "cases", cases) == len(cases)
    assert list(read_cases(tmp_path / "cases")) == cases


def test_a_result_is_made_of_all_its_splices_whatever_their_order() -> None:
    splices = (Splice(0, 1, "one"), Splice(4, 5, "five"))
    case = Case("1", "k", "a.py", "a b c", "", "", Expectation("apply", (splices, splices[::-1])), encoding="utf-16-le")
    assert case.right == [b"\xff\xfe" + "one b five".encode("utf-16-le")] * 2


@pytest.mark.parametrize(
    ("slip", "before", "after"),
    [
        (dedented, Texts(["    a", "", "      b"], ["    c"]), Texts(["a", "", "  b"], ["c"])),
        (lambda texts: retabbed(texts, ""), Texts(["\ta"], ["\t\tb"]), Texts(["    a"], ["        b"])),
        (lambda texts: retabbed(texts, "    x"), Texts(["      a"], ["b"]), Texts(["\t  a"], ["b"])),
        (lambda texts: retabbed(texts, "  x"), Texts(["      a"], ["b"]), Texts(["\t\t\ta"], ["b"])),
    ],
)
def test_slips_of_indentation(slip: Callable[[Texts], Texts], before: Texts, after: Texts) -> None:
    assert slip(before) == after


@pytest.mark.parametrize("slip", [dedented, lambda texts: retabbed(texts, "")])
def test_a_slip_that_changes_nothing_is_none(slip: Callable[[Texts], Texts]) -> None:
    with pytest.raises(UnfitError):
        slip(Texts(["a", "  b"], ["a"]))


def test_quotes_open_and_close_in_turn() -> None:
    assert curly('say "it" and \'that\' "') == "say “it” and ‘that’ “"


def test_numbers_are_those_of_the_lines() -> None:
    old, new = numbered(Texts(["a", "b"], ["c"]), 8, random.Random(1))
    assert [line.strip(" 0")[:1] for line in old] == ["9", "1"]
    assert [line[-1] for line in old] == ["a", "b"]
    assert new[0].endswith("c")


@pytest.mark.parametrize(("line", "squashed"), [("a b", "ab"), ("a   b", "ab"), ("ab", None), ("  ab  ", None)])
def test_space_inside_a_line_changes_and_nothing_else(line: str, squashed: str | None) -> None:
    slipped = spaced(line, random.Random(1))
    assert slipped != line
    assert slipped is None if squashed is None else slipped and slipped.replace(" ", "").replace("\t", "") == squashed


def test_a_misspelt_name_is_near_and_an_unlike_one_is_not() -> None:
    chance = random.Random(1)
    assert misspelt("return None", chance) is None
    assert misspelt("return counter", chance) not in {None, "return counter"}
    assert unlike("read_counter", "read_count counters window_title", chance) == "window_title"
    assert unlike("read_counter", "read_count counters Window", chance) is None


def test_indentation_that_lines_share() -> None:
    assert common_indent(["    a", "", "  b"]) == "  "
    assert common_indent(["\ta", "  b"]) == ""
    assert common_indent([""]) == ""
