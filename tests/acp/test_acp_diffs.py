"""What an editor is shown of a diff is what the diff says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.acp.cards import block, code, title_of
from handrail.acp.diffs import Piece, pieces_of
from handrail.edit.diff import unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "-c", "+d", "\\ e", ""]), max_size=30)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@given(old=TEXTS, new=TEXTS)
def test_the_pieces_put_in_their_places_make_the_new_text_of_the_old(old: str, new: str) -> None:
    after = new.splitlines(keepends=True)
    before = old
    for piece in reversed(list(pieces_of(unified_diff(old, new, "x.py").text))):
        assert piece.path == "x.py"
        shown = after[max(0, piece.line - 1) :]
        assert "".join(shown).startswith(piece.new)
        at = before.rfind(piece.old or "")
        assert at >= 0
        before = before[:at] + piece.new + before[at + len(piece.old or "") :]
    if len(list(pieces_of(unified_diff(old, new, "x.py").text))) == 1:
        assert before == new


@pytest.mark.parametrize(
    ("old", "new", "path", "pieces"),
    [
        (None, "a\n", "new.py", [Piece("new.py", 1, None, "a\n")]),
        ("a\n", None, "gone b.py", [Piece("gone b.py", 0, "a\n", "")]),
        ("a", "b", "x", [Piece("x", 1, "a", "b")]),
        ("a\n", "b\n", "/else/where", [Piece("/else/where", 1, "a\n", "b\n")]),
        ("a\n", "b\n", 'q"u\\o\te\n', [Piece('q"u\\o\te\n', 1, "a\n", "b\n")]),
        ("a\n", "b\n", "ü\u202e.py", [Piece("ü\u202e.py", 1, "a\n", "b\n")]),
    ],
)
def test_files_that_come_and_go_and_have_strange_names(old, new, path: str, pieces: list[Piece]) -> None:
    assert list(pieces_of(unified_diff(old, new, path).text)) == pieces


def test_a_diff_that_is_cut_off_gives_what_there_is() -> None:
    diff = unified_diff("".join(f"{n}\n" for n in range(9_000)), "".join(f"{n}x\n" for n in range(9_000)), "long")
    assert diff.truncated
    [piece] = pieces_of(diff.text)
    assert (piece.old or "").startswith("0\n1\n2\n")
    assert list(pieces_of("(the old content is binary or over 8 MiB: no diff)\n")) == []


@given(text=st.text(alphabet="`ab\n ", max_size=40))
def test_no_text_ends_the_code_that_it_is_shown_as(text: str) -> None:
    for shown in (code(text), block(text)):
        ticks = shown[: len(shown) - len(shown.lstrip("`"))]
        assert shown.endswith(ticks)
        assert ticks not in shown[len(ticks) : -len(ticks)] or not text.strip("`\n ")


def test_titles_say_what_a_call_is_about() -> None:
    assert title_of("exec", {"command": "make `x`\nrm y"}) == "make `x`\\nrm y"
    assert title_of("grep", {"pattern": "a|b", "path": "src"}) == "grep `a|b` in `src`"
    assert title_of("read", {"path": "[a](b).py"}) == "read `[a](b).py`"
    assert title_of("edit", {"path": "[a](b).py"}) == "edit [a](b).py"
    assert title_of("undo", "no arguments") == "undo"
