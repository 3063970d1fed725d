"""grep: lines by what is in them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.workspace.search.ripgrep import find_ripgrep

Rail = Callable[..., Handrail]


def lines(rail: Handrail, pattern: str, *arguments: str, **options: object) -> list[tuple[str, int, str]]:
    result = rail.grep(pattern, *arguments, **options)
    assert result.ok, result.error
    return [(match.path, match.line, match.text) for match in result.data.matches]


def test_matches_are_named_by_file_and_line_in_order(one: Handrail, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "b.py").write_text("import os\nx = round(1.5)\n")
    (workspace / "a.py").write_text("round(2)\n\nround(3)\n")
    assert lines(one, r"round\(") == [
        ("a.py", 1, "round(2)"),
        ("a.py", 3, "round(3)"),
        ("src/b.py", 2, "x = round(1.5)"),
    ]
    result = one.grep(r"round\(")
    assert result.summary == "3 matches in 2 files"
    assert result.content == "a.py\n  1: round(2)\n  3: round(3)\n\nsrc/b.py\n  2: x = round(1.5)\n"
    meta = result.meta
    assert (meta.returned, meta.total, meta.files, meta.truncated, meta.engine) == (3, 3, 2, False, "ripgrep")


def test_context_is_marked_apart_and_given_with_each_match(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\nHIT\nfour\nfive\nsix\nseven\nHIT\n")
    result = one.grep("HIT", context_lines=1)
    assert result.content == "a.txt\n  2- two\n  3: HIT\n  4- four\n  --\n  7- seven\n  8: HIT\n"
    first, second = result.data.matches
    assert (first.before, first.after) == (("two",), ("four",))
    assert (second.before, second.after) == (("seven",), ())
    assert (result.meta.returned, result.meta.total) == (2, 2)


def test_neighbours_that_match_too_are_matches_and_context(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("HIT 1\nHIT 2\nx\n")
    first, second = one.grep("HIT", context_lines=2).data.matches
    assert (first.before, first.after) == ((), ("HIT 2", "x"))
    assert (second.before, second.after) == (("HIT 1",), ("x",))


def test_max_results_is_a_total_over_all_files(one: Handrail, workspace: Path) -> None:
    """ripgrep's -m counts for each file; taken for a total it gives as many times more as there are files."""
    for name in "abcdefgh":
        (workspace / name).write_text("hit\n" * 10)
    result = one.grep("hit", max_results=25)
    assert [(match.path, match.line) for match in result.data.matches] == [
        (name, line) for name in "abc" for line in range(1, 11)
    ][:25]
    assert (result.meta.returned, result.meta.truncated) == (25, True)
    assert result.meta.total >= 26
    assert (result.meta.total == 80) != result.meta.total_is_lower_bound
    assert "narrow" in result.warnings[0]


def test_the_last_match_keeps_its_context(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("hit 1\nx\nhit 2\ny\nz\nhit 3\n")
    result = one.grep("hit", max_results=2, context_lines=1)
    assert result.content.startswith("a\n  1: hit 1\n  2- x\n  3: hit 2\n  4- y\n")
    assert "hit 3" not in result.content


def test_colons_in_names_and_lines_split_nothing(one: Handrail, workspace: Path) -> None:
    """Text output split on colons takes a:12:b for line 12 of a."""
    (workspace / "a:12:b").write_text("x: 3:4: hit\n")
    assert lines(one, "hit") == [("a:12:b", 1, "x: 3:4: hit")]
    assert one.grep("hit").content == "a:12:b\n  1: x: 3:4: hit\n"


def test_odd_names_and_lines_are_made_visible(one: Handrail, workspace: Path) -> None:
    (workspace / "new\nline:7:x").write_bytes(b"hit \x1b[31mred\x1b[0m\tand \xff\xfe\n")
    (workspace / "caf\udce9").write_bytes(b"caf\xe9 hit\n")
    result = one.grep("hit")
    assert {match.path for match in result.data.matches} == {"new\\nline:7:x", "caf\\udce9"}
    assert "café hit" in result.content
    assert "\\x1b[31mred" in result.content
    assert "\x1b" not in result.content
    assert len(result.content.splitlines()) == 5


def test_case_counts_unless_it_should_not(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("Word\nword\nWÖRD\n")
    assert [line for _, line, _ in lines(one, "word")] == [2]
    assert [line for _, line, _ in lines(one, "word", case_sensitive=False)] == [1, 2]
    assert [line for _, line, _ in lines(one, "wörd", case_sensitive=False)] == [3]


def test_the_file_pattern_chooses_files_and_overrides_no_ignore_rule(one: Handrail, workspace: Path) -> None:
    for path in ("a.py", "a.pyc", "src/b.py", "src/b.ts", "gen/c.py"):
        (workspace / path).parent.mkdir(exist_ok=True)
        (workspace / path).write_text("hit\n")
    (workspace / ".gitignore").write_text("*.pyc\ngen/\n")
    assert [path for path, _, _ in lines(one, "hit", file_pattern="*.py")] == ["a.py", "src/b.py"]
    assert lines(one, "hit", file_pattern="*.pyc") == []
    assert [path for path, _, _ in lines(one, "hit", file_pattern="src/*.{py,ts}")] == ["src/b.py", "src/b.ts"]
    assert [path for path, _, _ in lines(one, "hit", "gen", file_pattern="c.*")] == ["gen/c.py"]


def test_a_named_file_is_searched_though_it_is_ignored(one: Handrail, workspace: Path) -> None:
    (workspace / ".gitignore").write_text("*.log\n")
    (workspace / "a.log").write_text("x\nhit\n")
    assert lines(one, "hit") == []
    assert lines(one, "hit", "a.log") == [("a.log", 2, "hit")]
    result = one.grep("nothing", "a.log")
    assert (result.content, result.meta.protected) == ("No matches. Searched a.log.\n", 0)


def test_a_link_to_a_file_inside_is_searched_as_that_file(one: Handrail, workspace: Path, tmp_path: Path) -> None:
    (workspace / "real.txt").write_text("hit\n")
    (workspace / "link").symlink_to("real.txt")
    (tmp_path / "outside").write_text("hit\n")
    (workspace / "away").symlink_to(tmp_path / "outside")
    assert lines(one, "hit", "link") == [("real.txt", 1, "hit")]
    assert [path for path, _, _ in lines(one, "hit")] == ["real.txt"]
    assert one.grep("hit", "away").error.code == "OUTSIDE_WORKSPACE"


@pytest.mark.parametrize(
    ("pattern", "reason"), [("round(", "unclosed group"), ("[a", "unclosed"), ("a{2", ""), ("(?<=a)b", "look-around")]
)
def test_a_broken_expression_is_told_with_its_reason_and_a_hint(
    one: Handrail, workspace: Path, pattern: str, reason: str
) -> None:
    (workspace / "a.txt").write_text("x\n")
    for path in (".", "a.txt"):
        error = one.grep(pattern, path).error
        assert error is not None
        assert error.code == "INVALID_ARGUMENT"
        assert reason in error.message
        assert "backslash" in error.message
        assert "\n" not in error.message


@pytest.mark.parametrize("pattern", ["a\nb", r"a\nb", "(?m)x\n"])
def test_an_expression_over_several_lines_is_refused(one: Handrail, workspace: Path, pattern: str) -> None:
    (workspace / "a.txt").write_text("a\nb\n")
    error = one.grep(pattern).error
    assert (error.code, "matches within one line" in error.message) == ("INVALID_ARGUMENT", True)


def test_an_expression_that_looks_like_an_option_is_an_expression(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("--pre=sh -v -e\n")
    assert lines(one, "--pre=sh") == [("a.txt", 1, "--pre=sh -v -e")]
    assert lines(one, "-e") == [("a.txt", 1, "--pre=sh -v -e")]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_an_expression_that_no_program_takes_is_refused(one: Handrail, text: str) -> None:
    assert one.grep(text).error.code == "INVALID_ARGUMENT"


def test_lines_end_alike_whatever_ends_them(one: Handrail, workspace: Path) -> None:
    (workspace / "dos.txt").write_bytes(b"first\r\nword\r\nlast")
    assert lines(one, "word$") == [("dos.txt", 2, "word")]
    assert lines(one, "^last$") == [("dos.txt", 3, "last")]


def test_an_expression_that_matches_nothing_in_particular_finds_lines(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n\ny\n")
    assert [line for _, line, _ in lines(one, "^$")] == [2]
    assert [line for _, line, _ in lines(one, "z*")] == [1, 2, 3]


def test_encodings_that_a_mark_tells_are_searched_as_text(one: Handrail, workspace: Path) -> None:
    for encoding, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"), ("utf-8", b"\xef\xbb\xbf")):
        (workspace / f"{encoding}.txt").write_bytes(mark + "first\nein Wört\nlast Wört\n".encode(encoding))
    expected = [(f"{name}.txt", line, text) for name in ("utf-16-be", "utf-16-le", "utf-8")
                for line, text in ((2, "ein Wört"), (3, "last Wört"))]  # fmt: skip
    assert lines(one, "Wört") == expected
    assert lines(one, "^first", "utf-8.txt") == [("utf-8.txt", 1, "first")]


def test_a_file_with_a_nul_anywhere_is_binary_and_skipped_whole(one: Handrail, workspace: Path) -> None:
    (workspace / "late").write_bytes(b"hit\n" + b"x\n" * 200_000 + b"\0\n")
    (workspace / "early").write_bytes(b"\0hit\n")
    (workspace / "text").write_bytes(b"hit\n")
    (workspace / "many").write_bytes(b"hit\n" * 200 + b"x\n" * 200_000 + b"\0\n")
    assert lines(one, "hit") == [("text", 1, "hit")]
    assert one.grep("hit", "late").error.code == "BINARY_FILE"
    assert one.grep("nothing", "late").ok


def test_a_line_of_a_megabyte_is_shown_around_its_match(one: Handrail, workspace: Path) -> None:
    (workspace / "min.js").write_text("a" * 1_000_000 + "NEEDLE" + "é" * 500_000 + "\nshort NEEDLE\n")
    [long, short] = one.grep("NEEDLE").data.matches
    assert long.text.startswith("…aaa")
    assert "NEEDLE" in long.text
    assert long.text.endswith("é…")
    assert len(long.text) <= 510
    assert short.text == "short NEEDLE"
    assert lines(one, "NEEDLE", "min.js")[0][2] == long.text


def test_the_same_answer_every_run(one: Handrail, workspace: Path) -> None:
    for number in range(400):
        (workspace / f"d{number % 20}").mkdir(exist_ok=True)
        (workspace / f"d{number % 20}" / f"f{number}.txt").write_text(f"hit {number}\n" * (number % 4))
    for options in ({}, {"max_results": 10_000}, {"context_lines": 2}, {"file_pattern": "*5.txt"}):
        answers = [one.grep("hit", **options) for _ in range(8)]
        assert len({answer.content.partition("… this is")[0] for answer in answers}) == 1
        assert len({repr(answer.data) for answer in answers}) == 1


def test_credentials_are_not_searched_and_cannot_be_named(one: Handrail, workspace: Path) -> None:
    (workspace / ".env").write_text("TOKEN=hit\n")
    (workspace / "a").write_text("hit\n")
    one.exec("true")
    result = one.grep("hit")
    assert ([match.path for match in result.data.matches], result.meta.protected) == (["a"], 1)
    assert one.grep("hit", ".env").error.code == "POLICY_DENIED"


NAMES = [".env", "deploy/.ENV.production", ".ssh/id_ed25519", "tls/server.key", "id_rsa. ", ".ſsh/x"]


@pytest.mark.parametrize("options", [{}, {"file_pattern": "*e*"}, {"max_results": 3}, {"case_sensitive": False}])
def test_the_count_of_protected_names_tells_nothing_of_what_is_in_them(
    one: Handrail, workspace: Path, options: dict[str, object]
) -> None:
    for name in NAMES:
        (workspace / name).parent.mkdir(exist_ok=True)
    for number in range(5):
        (workspace / f"file{number}.txt").write_text("sk-a\n")
    answers: set[str] = set()
    one.exec("true")
    for content in ("", "sk-a", "sk-b\n" * 1_000, "\0sk-a", "sk-a" * 100_000):
        for name in NAMES:
            (workspace / name).write_text(content)
        result = one.grep("sk-a", **options)
        shown = result.content.partition("… this is")[0]
        answers.add(repr((shown, result.data, result.meta.protected, result.warnings)))
    assert len(answers) == 1


def test_a_kept_output_is_searched_like_a_file(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(20_000)))
    one = rail()
    for number in range(300):
        (workspace / f"f{number:03}.txt").write_text("x" * 300)
    kept = one.grep("line", max_results=10_000).meta.output
    assert kept is not None
    result = one.grep(r": line 1999\d$", kept, max_results=3)
    assert [match.text for match in result.data.matches] == [f"  {n + 1}: line {n}" for n in (19_990, 19_991, 19_992)]
    assert {match.path for match in result.data.matches} == {kept}
    assert (result.meta.total, result.meta.returned, result.meta.truncated) == (10, 3, True)
    assert one.grep("x", "@output/none").error.code == "NOT_FOUND"
    assert rail(session="other").grep("line", kept).error.code == "NOT_FOUND"
    assert one.grep("line(", kept).error.code == "INVALID_ARGUMENT"


def test_more_than_is_shown_is_kept_whole_for_read(one: Handrail, workspace: Path, joined: Callable[..., str]) -> None:
    (workspace / "a.txt").write_text("hit\n" * 500)
    result = one.grep("hit", "a.txt")
    assert (result.meta.returned, result.meta.total, result.meta.total_is_lower_bound) == (100, 500, False)
    assert joined(one, result.meta.output).count(": hit\n") == 500
    assert result.summary == "100 of 500 matches, in 1 file"
    assert f"read {result.meta.output} for all of it" in result.content


def test_nothing_found_says_where_it_looked(one: Handrail, workspace: Path) -> None:
    (workspace / "src").mkdir()
    result = one.grep("absent", "src", file_pattern="*.py")
    assert (result.summary, result.meta.total, result.data.matches) == ("No matches", 0, ())
    assert result.content.startswith("No matches. Searched src, files matching *.py.")


def test_a_cancelled_search_ends(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("hit\n")
    one = rail()
    one.cancel()
    assert one.grep("hit").error.code == "CANCELLED"


def test_folders_that_cannot_be_read_are_passed_over_and_told(
    common_folder: Path, warned_as_ordinary_user: Callable[..., list[tuple[bool, str | None, str, list[str]]]]
) -> None:
    workspace = common_folder / "workspace"
    (common_folder / "bin").mkdir()
    shutil.copy(find_ripgrep(()) or "", common_folder / "bin" / "rg")  # ours may lie where only its owner may look
    for path in ("open/a.txt", "closed/b.txt"):
        (workspace / path).parent.mkdir()
        (workspace / path).write_text("hit\n")
    (workspace / "closed").chmod(0)
    try:
        found = warned_as_ordinary_user([("grep", {"pattern": "hit"}), ("find", {"pattern": "*.txt"})])
    finally:
        (workspace / "closed").chmod(0o755)
    told = ["1 place could not be read and was passed over."]
    assert found == [(True, None, "open/a.txt\n  1: hit\n", told), (True, None, "open/a.txt\n", told)]
