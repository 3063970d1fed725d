"""The diff of a result is a patch: the real program makes the new text of the old one with it."""

import random
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.edit.diff import _split_at_anchors as split_at_anchors  # pyright: ignore[reportPrivateUsage]
from handrail.edit.diff import build_edit_diff, build_unified_diff
from handrail.edit.lines import Replacement, apply_replacements


def applied(folder: Path, diff: str, old: str | None, name: str = "file.txt") -> str:
    """What `git apply` makes of a file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if old is not None:
        path.write_text(old, newline="")
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "--unidiff-zero", "-"],
        cwd=folder,
        input=diff.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr.decode()}\n{diff}"
    return path.read_bytes().decode()


@pytest.mark.parametrize(
    ("old", "new", "text", "added", "removed"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", 1, 1),
        ("a\n", "a\nb\n", "@@ -1 +1,2 @@\n a\n+b\n", 1, 0),
        ("a\nb\n", "a\n", "@@ -1,2 +1 @@\n a\n-b\n", 0, 1),
        ("a", "b", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", 1, 1),
        ("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", 1, 1),
        ("a\n", "", "@@ -1 +0,0 @@\n-a\n", 0, 1),
        ("+\n-\n", "-\n+\n", "@@ -1,2 +1,2 @@\n+-\n +\n--\n", 1, 1),
    ],
)
def test_a_diff_looks_as_git_shows_it(old: str, new: str, text: str, added: int, removed: int) -> None:
    diff = build_unified_diff(old, new, "f")
    assert diff.text == f"--- a/f\n+++ b/f\n{text}"
    assert (diff.added, diff.removed, diff.truncated) == (added, removed, False)


def test_equal_texts_have_no_diff() -> None:
    assert build_unified_diff("a\n", "a\n", "f").text == ""


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    old = [f"{number}\n" for number in range(40)]
    new = [*old[:5], "five\n", *old[6:30], "thirty\n", *old[31:]]
    assert build_unified_diff("".join(old), "".join(new), "f").text.count("@@ -") == 2


lines = st.sampled_from(
    [
        "a\n",
        "b\n",
        "\n",
        "  indented\n",
        "+\n",
        "-\n",
        "--- a/x\n",
        "@@ -1 +1 @@\n",
        "\\ No newline\n",
        "grün\r\n",
        "\r\n",
    ]
)
texts = st.lists(lines | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), max_size=25).map(
    "".join
)


@given(texts, texts)
@example("", "a\n")
@example("", "a")
@example("a", "")
@example("a\n" * 30, "a\n" * 14 + "b\n" + "a\n" * 16)
def test_git_makes_the_new_text_of_the_old_one(tmp_path: Path, old: str, new: str) -> None:
    if old == new:
        return
    assert applied(tmp_path, build_unified_diff(old, new, "file.txt").text, old) == new


@given(texts.filter(bool))
def test_git_creates_the_new_file(tmp_path: Path, new: str) -> None:
    assert applied(tmp_path, build_unified_diff(None, new, "new/file.txt").text, None, "new/file.txt") == new


@given(texts, st.data())
@example("a", None)
@example("a\n" * 20, None)
def test_git_makes_the_new_text_where_it_is_known_what_is_replaced(
    tmp_path: Path, old: str, data: st.DataObject | None
) -> None:
    ends = sorted(data.draw(st.lists(st.integers(0, len(old)), max_size=8))) if data else [0, 1]
    replacements = [
        Replacement(start, end, data.draw(texts) if data else "")
        for start, end in zip(ends[::2], ends[1::2], strict=False)
    ]
    new = apply_replacements(old, replacements)
    if old == new:
        return
    diff = build_edit_diff(old, replacements, "file.txt")
    assert applied(tmp_path, diff.text, old) == new
    added, removed = (sum(line.startswith(sign) for line in diff.text.split("\n")[2:]) for sign in "+-")
    assert (diff.added, diff.removed) == (added, removed)


def test_two_places_in_a_last_line_without_newline_are_one_change(tmp_path: Path) -> None:
    diff = build_edit_diff("00", [Replacement(0, 0, "1"), Replacement(2, 2, "a\n")], "file.txt")
    assert applied(tmp_path, diff.text, "00") == "100a\n"


def test_a_diff_of_known_places_is_the_diff_of_the_texts() -> None:
    old = "".join(f"line {number}\n" for number in range(60))
    places = [old.index(f"line {number}\n") for number in (2, 7, 30, 59)]
    replacements = [Replacement(at, at + 4, "LINE") for at in places]
    assert build_edit_diff(old, replacements, "f") == build_unified_diff(
        old, apply_replacements(old, replacements), "f"
    )


def test_a_part_of_a_text_is_enough_for_its_diff() -> None:
    old = "".join(f"line {number}\n" for number in range(60))
    at = old.index("line 40\n")
    part = old.index("line 30\n")
    whole = build_edit_diff(old, [Replacement(at, at + 4, "LINE\nLINE")], "f")
    assert (
        build_edit_diff(old[part:], [Replacement(at - part, at - part + 4, "LINE\nLINE")], "f", lines_before=30)
        == whole
    )


def test_git_takes_diffs_of_edits_to_longer_texts(tmp_path: Path, count: Callable[[int], int]) -> None:
    chance = random.Random(11)
    for _ in range(count(200)):
        old = [
            f"{chance.choice(['x', 'y', '', 'return'])}{chance.randrange(30)}\n"
            for _ in range(chance.randrange(1, 400))
        ]
        new = list(old)
        for _ in range(chance.randrange(1, 12)):
            at = chance.randrange(len(new) + 1)
            new[at : at + chance.randrange(4)] = [f"new {number}\n" for number in range(chance.randrange(4))]
        if old != new:
            diff = build_unified_diff("".join(old), "".join(new), "file.txt")
            assert applied(tmp_path, diff.text, "".join(old)) == "".join(new)


@pytest.mark.parametrize(
    "name",
    [
        "a file",
        "grün",
        'quote"d',
        "back\\slash",
        "tab\tname",
        "line\nbreak",
        "a/b c/d",
        " lead",
        "trail ",
        "\x1b[31m",
        "日本",
    ],
)
def test_any_name_stands_in_the_header_as_git_writes_it(tmp_path: Path, name: str) -> None:
    for old, created in (("old\n", False), (None, True)):
        diff = build_unified_diff(None if created else old or "", "new\n", name)
        assert applied(tmp_path, diff.text, old, name) == "new\n"
        assert diff.text.splitlines()[1].removesuffix("\t").isprintable()
        assert len(diff.text.splitlines()) == (4 if created else 5)


def test_a_name_cannot_forge_lines_of_a_diff() -> None:
    diff = build_unified_diff("old\n", "new\n", "a\n+++ b/safe.txt\n@@ -1 +1 @@\n-x\n+y")
    assert diff.text.count("\n+") == 2
    assert "\n+y" not in diff.text


WORST: dict[str, Callable[[], tuple[list[str], list[str]]]] = {
    "everything changes": lambda: ([f"a{n}" for n in range(100_000)], [f"b{n}" for n in range(100_000)]),
    "every tenth line": lambda: (
        [str(n) for n in range(100_000)],
        [str(n) if n % 10 else "new" for n in range(100_000)],
    ),
    "all lines equal": lambda: (["a"] * 100_000, ["a"] * 50_000 + ["b"] + ["a"] * 49_000 + ["c"]),
    "two kinds of lines": lambda: tuple(random.Random(n).choices("ab", k=1_990) for n in (1, 2)),  # type: ignore[return-value]
    "reversed": lambda: ([str(n) for n in range(1_990)], [str(n) for n in range(1_990)][::-1]),
    "few kinds of lines": lambda: tuple(random.Random(n).choices("abcdefgh", k=1_990) for n in (1, 2)),  # type: ignore[return-value]
    "every second line blank": lambda: (
        [text for n in range(995) for text in (f"old {n}", "")],
        [text for n in range(995) for text in (f"new {n}", "")],
    ),
    "a short new text of blank lines": lambda: ([str(n % 2) for n in range(20_000)], ["0", "x"] * 99),
    "many lines that are there twice": lambda: (
        [str(n % 3_000) for n in range(6_000)],
        [str(n * 7 % 3_000) for n in range(6_000)],
    ),
    "an old text without end": lambda: ([str(n) for n in range(400_000)], [str(n * 20_011) for n in range(20)]),
    "one huge line": lambda: (["x" * 5_000_000], ["y" * 5_000_000]),
}


@pytest.mark.parametrize("kind", WORST)
def test_the_time_is_bounded_whatever_the_texts(kind: str) -> None:
    old, new = ("".join(f"{line}\n" for line in lines) for lines in WORST[kind]())
    start = time.process_time()
    diff = build_unified_diff(old, new, "f")
    assert time.process_time() - start < 5
    assert diff.added + diff.removed
    assert len(diff.text) < 70_000


def test_many_lines_of_a_long_text_are_counted_one_by_one() -> None:
    old = [f"line {number}\n" for number in range(50_000)]
    new = [line.upper() if not number % 97 else line for number, line in enumerate(old)]
    diff = build_unified_diff("".join(old), "".join(new), "a")
    assert (diff.added, diff.removed) == (516, 516)


@given(old=st.lists(st.sampled_from("abcdef")), new=st.lists(st.sampled_from("abcdef")))
def test_what_is_between_anchors_is_all_that_changes(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    at = 0
    for a, b, c, d in split_at_anchors(old, new):
        made += old[at:a]
        assert len(made) == c
        made += new[c:d]
        at = b
    assert made + old[at:] == new


def test_a_long_diff_is_cut_between_lines_and_says_so() -> None:
    diff = build_unified_diff(None, "".join(f"line {number}\n" for number in range(20_000)), "f")
    assert diff.truncated
    assert diff.added == 20_000
    *_, last, note = diff.text.splitlines()
    assert last.startswith("+line ")
    assert note.startswith("… ")
    assert note.endswith(" more characters")


@pytest.mark.parametrize("gap", ["", "same\n" * 9])
@pytest.mark.parametrize("twice", [False, True])
def test_the_diff_of_very_many_replacements_stops_when_it_is_full_and_counts_all(gap: str, twice: bool) -> None:
    line = "old and old\n" if twice else "old\n"
    before = "".join(f"{number} {line}{gap}" for number in range(20_000))
    places = [match.start() for match in re.finditer("old", before)]
    diff = build_edit_diff(before, [Replacement(at, at + 3, "new") for at in places], "a")
    assert (diff.added, diff.removed, diff.truncated) == (20_000, 20_000, True)
    assert diff.text.endswith("\n… more changes follow\n")
    shown = [line for line in diff.text.splitlines()[:-1] if not line.startswith("@@")]
    assert len(shown) > 1_000
    new = [line[1:] for line in shown if line.startswith("+") and not line.startswith("+++")]
    assert new == [f"{number} {line.strip()}".replace("old", "new") for number in range(len(new))]
