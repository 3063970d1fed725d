"""edit: when it does nothing, it says why, what is there instead, and what to do next."""

import codecs
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.edit.match import MAX_PLACES
from handrail.tools.text import MAX_TEXT_BYTES
from handrail.workspace.pages import is_settled

Rail = Callable[..., Handrail]
SOURCE = "".join(f"def f{number}(x):\n\tif x > {number}:\n\t\treturn x + {number}\n\n" for number in range(20))


@pytest.fixture
def source(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    ("old", "message"),
    [
        (
            "def f3(y):\n    if x > 3:\n",
            "oldText is not in a.py. Closest is lines 13–14: line 13 has x, oldText has y; "
            "line 14 has →, oldText has ···· (· is a space, → is a tab). Read 11–16, then retry.",
        ),
        (
            "return  x - 4",
            "oldText is not in a.py. Closest is line 19: line 19 has ·x·+, oldText has ··x·- (· is a space). "
            "Read 17–21, then retry.",
        ),
        (
            "if x > 4:\n\t\treturn x - 4",
            "oldText is not in a.py. Closest is lines 18–19: line 19 has +, oldText has -. Read 16–21, then retry.",
        ),
        (
            "def f5(x):\n\t\treturn x + 5\n",
            "oldText is not in a.py. Closest is lines 21–23: line 22 (→if·x·>·5:) is not in oldText "
            "(· is a space, → is a tab). "
            "Read 19–25, then retry.",
        ),
        (
            "def f5(x):\n\tif x > 5:\n\t\tprint()\n\t\treturn x + 5\n",
            "oldText is not in a.py. Closest is lines 21–23: the file has no line →→print() there (→ is a tab). "
            "Read 19–25, then retry.",
        ),
        (
            "if x > 4:\n\t\treturn x + y \n",
            "oldText is not in a.py. Closest is lines 18–19: line 19 has 4, oldText has y· (· is a space). "
            "Read 16–21, then retry.",
        ),
        ("something else entirely", "oldText is not in a.py. No similar text was found. Read it, then retry."),
        (" \n \n", "oldText is not in a.py. No similar text was found. Read it, then retry."),
    ],
)
def test_a_text_that_is_not_there_names_the_closest_and_the_difference(
    one: Handrail, source: Path, old: str, message: str
) -> None:
    error = one.edit("a.py", old, "anything").error
    assert (error.code, error.message) == ("NO_MATCH", message)
    assert source.read_text() == SOURCE


def test_the_closest_region_is_data_too(one: Handrail, source: Path) -> None:
    details = one.edit("a.py", "def f3(x):\n    if x < 3:\n", "anything").error.details
    assert details["closest"] == {
        "first": 13,
        "last": 14,
        "differences": [{"line": 14, "file": "\tif x >", "oldText": "    if x <"}],
    }


@pytest.mark.parametrize("shape", ["{0}: {1}", "{0:>6}→{1}", "{0}\t{1}", "{0:4} | {1}"])
def test_line_numbers_in_a_part_of_the_new_text_are_noticed(one: Handrail, source: Path, shape: str) -> None:
    lines = [shape.format(number, line) for number, line in enumerate(SOURCE.split("\n"), 1)]
    error = one.edit("a.py", "\n".join(lines[8:11]), "\n".join((*lines[8:11], "\tpass"))).error
    assert "oldText begins its lines with line numbers, newText only some; leave them out." in error.message


def test_an_edit_that_was_made_before_is_noticed(one: Handrail, source: Path) -> None:
    assert one.edit("a.py", "return x + 7", "return 7 + x").ok
    error = one.edit("a.py", "return x + 7\n", "return 7 + x\n").error
    assert "newText already exists, in line 31: this edit may be done already." in error.message
    assert error.details["applied"] == {"first": 31, "last": 31}


@pytest.mark.parametrize(
    ("line", "old", "told"),
    [
        ('say("hello")', "say(“hello”)", "oldText has “hello” (U+201C, U+201D)"),
        ("a – b, a range", "a - b, a range", "line 1 has – (U+2013), oldText has -"),
        ("total\u00a0price of it", "total price of it", "line 1 has <U+00A0>, oldText has ·"),
        ("zero\u200bwidth is here", "zerowidth is here", "<U+200B>"),
    ],
)
def test_characters_that_look_alike_are_told_apart(
    one: Handrail, workspace: Path, line: str, old: str, told: str
) -> None:
    (workspace / "a.txt").write_text(f"{line}\nthe next line is one more\n")
    assert told in one.edit("a.txt", f"{old}\nthe next line is another", "x").error.message


def test_several_places_are_named_with_what_is_around_them(one: Handrail, source: Path) -> None:
    result = one.edit("a.py", "\t\treturn x", "anything")
    assert result.error.code == "AMBIGUOUS_MATCH"
    first = "oldText occurs 20 times: lines 3, 7, 11, … (context below). Add a line around it, or set replaceAll."
    assert result.summary == first
    assert result.content.startswith(f"{first}\nline 3:\n\tif x > 0:\n\t\treturn x + 0\n")
    assert result.error.details["count"] == 20
    places = result.error.details["places"]
    assert [place["line"] for place in places] == [3, 7, 11]
    assert places[1]["context"] == "\tif x > 1:\n\t\treturn x + 1\n"
    assert source.read_text() == SOURCE


def test_three_places_are_all_named(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join("here\n" if line in {12, 40, 77} else "\n" for line in range(1, 90)))
    said = "oldText occurs 3 times: lines 12, 40, 77 (context below). Add a line around it, or set replaceAll."
    assert one.edit("a.txt", "here", "there").summary == said


@pytest.mark.parametrize(("text", "old", "count"), [("aaa", "aa", 2), ("ababa", "aba", 2), ("\n\n\n", "\n\n", 2)])
def test_places_that_overlap_are_several(one: Handrail, workspace: Path, text: str, old: str, count: int) -> None:
    (workspace / "a.txt").write_text(text)
    error = one.edit("a.txt", old, "x").error
    assert (error.code, error.details["count"]) == ("AMBIGUOUS_MATCH", count)


def test_the_same_text_changes_nothing(one: Handrail, source: Path) -> None:
    assert one.edit("a.py", "def f3", "def f3").error.code == "NO_CHANGE"
    error = one.edit("a.py", "def f3(x):\n", "def f3(x):\r\n").error
    assert error.code == "NO_CHANGE"
    assert "line endings" in error.message
    assert source.read_text() == SOURCE


def test_no_text_is_no_place_in_a_file_that_has_some(one: Handrail, source: Path) -> None:
    error = one.edit("a.py", "", "x").error
    assert error.code == "INVALID_ARGUMENT"
    assert "use write" in error.message
    assert source.read_text() == SOURCE


def test_a_missing_file_names_what_may_be_meant(one: Handrail, workspace: Path) -> None:
    (workspace / "total.py").write_text("x")
    error = one.edit("totl.py", "x", "y").error
    assert (error.code, error.message) == ("NOT_FOUND", "No file totl.py. Near: total.py.")
    assert error.details == {"near": ["total.py"]}
    error = one.edit("new.py", "", "y").error
    assert (error.code, error.message) == ("NOT_FOUND", "No file new.py. Use write to create it.")
    assert one.edit("no/such/folder.py", "x", "y").error.code == "NOT_FOUND"
    assert os.listdir(workspace) == ["total.py"]


@pytest.mark.parametrize("target", ["../outside.txt", "../missing.txt", "{outside}"])
@pytest.mark.parametrize("old", ["theirs", ""])
def test_a_link_outside_is_told_as_such_and_not_as_missing(
    one: Handrail, workspace: Path, tmp_path: Path, target: str, old: str
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("theirs")
    (workspace / "link").symlink_to(target.format(outside=outside))
    assert one.edit("link", old, "mine").error.code == "OUTSIDE_WORKSPACE"
    assert outside.read_text() == "theirs"
    assert not (tmp_path / "missing.txt").exists()


def test_a_link_to_nothing_inside_is_missing(one: Handrail, workspace: Path) -> None:
    (workspace / "link").symlink_to("nothing.txt")
    assert one.edit("link", "x", "y").error.code == "NOT_FOUND"


def test_a_link_to_nothing_names_its_target_and_not_itself(one: Handrail, workspace: Path) -> None:
    (workspace / "notes.txt").symlink_to("moved.txt")
    (workspace / "note.txt").write_text("x")
    error = one.edit("notes.txt", "x", "y").error
    assert error.message == "No file notes.txt. It is a link to moved.txt, which is missing. Near: note.txt."
    assert error.details == {"near": ["note.txt"]}


def test_an_argument_that_means_the_first_match_is_not_taken_for_all(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x = 1\n" * 3)
    texts = {"path": "a.txt", "oldText": "x = 1", "newText": "x = 2"}
    error = one.call("edit", {**texts, "allow_multiple_matches": True}).error
    assert error is not None
    assert error.code == "INVALID_ARGUMENT"
    assert "replaceAll" not in error.message
    assert "it means the first match only: lengthen oldText" in error.message
    assert 'multi_edit with occurrence "first"' in error.message


def test_a_line_with_several_places_is_shown_once(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("aaaa\nnext\n" + "aa\n")
    result = one.edit("a.txt", "aa", "b")
    said = "oldText occurs 4 times: lines 1, 3 (context below). Add a line around it, or set replaceAll."
    assert result.content == f"{said}\nline 1:\naaaa\nnext\nline 3:\nnext\naa"


def test_accents_that_are_encoded_otherwise_are_told(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("un caf\u00e9 noir\n")
    error = one.edit("a.txt", "un cafe\u0301 noir ou au lait\n", "x\n").error
    assert "Closest is line 1" in error.message
    assert "Accents are encoded otherwise in oldText" in error.message


def test_lone_carriage_returns_are_told(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one line\rtwo lines\rthree lines")
    error = one.edit("a.txt", "one line\ntwo lines", "x").error
    assert error.code == "NO_MATCH"
    assert "lines of a.txt end with a carriage return alone (U+000D)" in error.message
    assert "No similar text was found. Read it, then retry." not in error.message
    assert one.edit("a.txt", "one line\rtwo lines", "x").ok
    assert (workspace / "a.txt").read_bytes() == b"x\rthree lines"


def test_credentials_are_not_edited(rail: Rail, workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=secret\n")
    (workspace / "link").symlink_to(".env")
    one = rail(mode="full")
    for path in (".env", "link"):
        result = one.edit(path, "KEY=x", "KEY=y")
        assert result.error.code == "POLICY_DENIED"
        assert "secret\n" not in result.content


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)), b"text\0with zero", b"%PDF-1.7\ntext\n", b"\x89PNG\r\n\x1a\n\0"],
)
def test_what_is_not_text_is_not_edited(one: Handrail, workspace: Path, data: bytes) -> None:
    (workspace / "a").write_bytes(data)
    assert one.edit("a", "text", "words").error.code == "BINARY_FILE"
    assert (workspace / "a").read_bytes() == data


@pytest.mark.parametrize("path", ["folder", "folder/", ".", "new/"])
def test_a_folder_is_no_file_to_edit(one: Handrail, workspace: Path, path: str) -> None:
    (workspace / "folder").mkdir()
    assert one.edit(path, "x", "y").error.code == "NOT_A_FILE"


def test_what_is_no_regular_file_is_not_edited(one: Handrail, workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    assert one.edit("fifo", "x", "y").error.code == "NOT_A_FILE"


def test_a_damaged_place_cannot_be_named_and_that_is_told(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_bytes("grün\nrot \ufffd".encode() + b"\xff\n")
    shown = one.read("a").content.splitlines()[1]
    error = one.edit("a", shown, "x").error
    assert error.code == "NO_MATCH"
    assert "U+FFFD" in error.message
    assert "line 2" in error.message


def test_a_file_over_the_limit_is_refused_before_it_is_read(one: Handrail, workspace: Path) -> None:
    with (workspace / "huge.txt").open("wb") as file:
        file.truncate(1 << 40)
    error = one.edit("huge.txt", "x", "y").error
    assert error.code == "LIMIT_EXCEEDED"
    assert "32 MiB" in error.message


def test_a_file_over_the_limit_of_read_is_edited(one: Handrail, workspace: Path) -> None:
    (workspace / "large.txt").write_bytes(b"x" * (9 << 20) + b"here")
    while not is_settled((workspace / "large.txt").stat()):
        os.sched_yield()
    one.read("large.txt", limit=1)
    assert one.edit("large.txt", "here", "there").ok
    assert (workspace / "large.txt").read_bytes() == b"x" * (9 << 20) + b"there"


def test_a_result_over_the_limit_is_refused_before_it_is_made(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x" * 100_000)
    error = one.edit("a.txt", "x", "y" * 1_000_000, replace_all=True).error
    assert error.code == "LIMIT_EXCEEDED"
    (workspace / "b.txt").write_text("é")
    assert one.edit("b.txt", "é", "ü" * (MAX_TEXT_BYTES // 2 + 1)).error.code == "LIMIT_EXCEEDED"


def test_more_places_than_one_edit_takes_are_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x" * (MAX_PLACES + 1))
    error = one.edit("a.txt", "x", "y", replace_all=True).error
    assert error.code == "LIMIT_EXCEEDED"
    assert str(MAX_PLACES) in error.message


def test_an_old_text_longer_than_the_file_is_just_not_there(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    assert one.edit("a.txt", "one\n" + "two\n" * 500_000, "x").error.code == "NO_MATCH"


def test_refusals_are_short_whatever_the_lines(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text(("x" * 100_000 + " end\n") * 4)
    for old in ("x end", "x" * 50_000 + "y end", "x" * 100_000 + "  end"):
        result = one.edit("a.txt", old, "z")
        assert result.error.code in {"NO_MATCH", "AMBIGUOUS_MATCH"}
        assert len(result.content) < 2_000


def test_a_mark_is_no_part_of_the_text(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_bytes(codecs.BOM_UTF8 + b"one line\n")
    assert one.edit("a", "\ufeffone line", "\ufeffanother line").ok
    assert (workspace / "a").read_bytes() == codecs.BOM_UTF8 + b"another line\n"
