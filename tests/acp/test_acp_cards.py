"""What an editor is shown of a diff is what the diff says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.acp.cards import format_code, format_code_block, parse_diff_files, parse_diff_hunks, render_call_title
from handrail.edit.diff import build_unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "-c", "+d", "\\ e", ""]), max_size=30)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@given(old=TEXTS, new=TEXTS)
def test_the_hunks_put_in_their_places_make_the_new_text_of_the_old(old: str, new: str) -> None:
    after = new.splitlines(keepends=True)
    before = old
    hunks = list(parse_diff_hunks(build_unified_diff(old, new, "x.py").text))
    for hunk in reversed(hunks):
        assert hunk.path == "x.py"
        assert "".join(after[max(0, hunk.start - 1) :]).startswith(hunk.new)
        assert hunk.start <= hunk.line <= max(hunk.start, len(after))
        at = before.rfind(hunk.old or "")
        assert at >= 0
        before = before[:at] + hunk.new + before[at + len(hunk.old or "") :]
    if len(hunks) == 1:
        assert before == new


def shown(diff: str) -> list[tuple[str, int, str | None, str]]:
    return [(file.path, file.line, file.old, file.new) for file in parse_diff_files(diff)]


@pytest.mark.parametrize(
    ("old", "new", "path", "files"),
    [
        (None, "a\n", "new.py", [("new.py", 1, None, "a\n")]),
        ("a\n", None, "gone b.py", [("gone b.py", 0, "a\n", "")]),
        ("a", "b", "x", [("x", 1, "a", "b")]),
        ("a\nb\nc\n", "a\nb\n", "x", [("x", 2, "a\nb\nc\n", "a\nb\n")]),
        ("a\n", "b\n", "/else/where", [("/else/where", 1, "a\n", "b\n")]),
        ("a\n", "b\n", 'q"u\\o\te\n', [('q"u\\o\te\n', 1, "a\n", "b\n")]),
        ("a\n", "b\n", "ü\u202e.py", [("ü\u202e.py", 1, "a\n", "b\n")]),
    ],
)
def test_files_that_come_and_go_and_have_strange_names(old, new, path: str, files) -> None:
    assert shown(build_unified_diff(old, new, path).text) == files


def test_all_places_of_a_file_are_one_difference_that_says_what_it_leaves_out() -> None:
    lines = [f"{number}\n" for number in range(1, 61)]
    new = [*lines]
    new[4:5] = ["five\n", "and a half\n"]
    new[56] = "fifty-six\n"
    [(path, line, old, after)] = shown(build_unified_diff("".join(lines), "".join(new), "x").text)
    assert (path, line) == ("x", 5)
    assert old == "2\n3\n4\n5\n6\n7\n8\n⋯ 44 lines ⋯\n53\n54\n55\n56\n57\n58\n59\n"
    assert after == "2\n3\n4\nfive\nand a half\n6\n7\n8\n⋯ 44 lines ⋯\n53\n54\n55\nfifty-six\n57\n58\n59\n"


def test_a_file_that_goes_and_comes_again_is_two_differences() -> None:
    diff = build_unified_diff("a\n", None, "x").text + build_unified_diff(None, "b\n", "x").text
    assert shown(diff) == [("x", 0, "a\n", ""), ("x", 1, None, "b\n")]


def test_a_diff_that_is_cut_off_gives_what_there_is() -> None:
    diff = build_unified_diff("".join(f"{n}\n" for n in range(9_000)), "".join(f"{n}x\n" for n in range(9_000)), "long")
    assert diff.truncated
    [file] = parse_diff_files(diff.text)
    assert (file.old or "").startswith("0\n1\n2\n")
    assert list(parse_diff_files("(the old content is binary or over 8 MiB: no diff)\n")) == []


@given(text=st.text(alphabet="`ab\n ", max_size=40))
def test_no_text_ends_the_code_that_it_is_shown_as(text: str) -> None:
    for shown in (format_code(text), format_code_block(text)):
        ticks = shown[: len(shown) - len(shown.lstrip("`"))]
        assert shown.endswith(ticks)
        assert ticks not in shown[len(ticks) : -len(ticks)] or not text.strip("`\n ")


def test_titles_say_what_a_call_is_about() -> None:
    assert render_call_title("exec", {"command": "make `x`\nrm y"}) == "make `x`\\nrm y"
    assert render_call_title("grep", {"pattern": "a|b", "path": "src"}) == "grep `a|b` in `src`"
    assert render_call_title("read", {"path": "[a](b).py"}) == "read `[a](b).py`"
    assert render_call_title("edit", {"path": "[a](b).py"}) == "edit [a](b).py"
    assert render_call_title("undo", "no arguments") == "undo"
    assert render_call_title("exec", "no arguments") == "exec"
    assert render_call_title("exec", {"command": " "}) == "exec"
    assert render_call_title("grep", {}) == "grep"
