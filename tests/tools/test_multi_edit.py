"""multi_edit: several edits of one file, each of what the one before made, all of them or none."""

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.tools.multi_edit import MULTI_EDIT, Occurrence, OneEdit

Rail = Callable[..., Handrail]
ENABLED = Settings(tools=Tools(enable=("multi_edit",)))


@pytest.fixture
def one(rail: Rail) -> Handrail:
    return rail(settings=ENABLED)


def edit(old: str, new: str, occurrence: Occurrence = "unique") -> OneEdit:
    return OneEdit(old_text=old, new_text=new, occurrence=occurrence)


def test_each_edit_sees_what_the_one_before_made_and_one_undo_takes_all_back(one: Handrail, workspace: Path) -> None:
    (workspace / "a.py").write_text("one\ntwo\n")
    result = one.multi_edit("a.py", [edit("one", "two three"), edit("two three\ntwo", "four")])
    assert result.error is None
    assert (workspace / "a.py").read_text() == "four\n"
    assert result.summary == "Edited a.py by 2 edits +1 −2"
    assert result.data.diff == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1 @@\n-one\n-two\n+four\n"
    assert [(each.strategy, each.replacements, each.first_line) for each in result.data.edits] == [
        ("exact", 1, 1), ("exact", 1, 1),
    ]  # fmt: skip
    assert (result.meta.occurrences, len(one.changes())) == (2, 1)
    assert one.undo().ok
    assert (workspace / "a.py").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(("occurrence", "expected"), [("unique", None), ("first", "y x x\n"), ("all", "y y y\n")])
def test_an_edit_takes_the_only_place_the_first_or_all(
    one: Handrail, workspace: Path, occurrence: Occurrence, expected: str | None
) -> None:
    (workspace / "a").write_text("x x x\n")
    result = one.multi_edit("a", [edit("x", "y", occurrence)])
    assert (workspace / "a").read_text() == (expected or "x x x\n")
    assert result.ok == (expected is not None)
    assert edit("x", "y").occurrence == "unique"


def test_an_edit_can_be_given_as_it_is_on_the_wire(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x x\n")
    assert one.multi_edit("a", [{"oldText": "x", "newText": "y", "occurrence": "first"}]).ok
    assert (workspace / "a").read_text() == "y x\n"


def test_the_first_place_is_found_in_any_encoding_and_with_any_ending(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_bytes(codecs.BOM_UTF8 + b"x\r\ny\r\nx\r\ny\r\n")
    assert one.multi_edit("a", [edit("x\ny", "é\nz\nq", "first")]).data.edits[0].first_line == 1
    assert (workspace / "a").read_bytes() == codecs.BOM_UTF8 + "é\r\nz\r\nq\r\nx\r\ny\r\n".encode()


def test_the_first_of_places_that_touch_is_the_only_one_that_changes(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x( )\nx( )\n")
    result = one.multi_edit("a", [edit("x()\n", "y()\nx()\n", "first")])
    assert result.error is None
    assert (workspace / "a").read_text() == "y()\nx( )\nx( )\n"
    assert (result.data.edits[0].replacements, result.meta.occurrences) == (1, 1)


@pytest.mark.parametrize("occurrence", ["unique", "first", "all"])
def test_one_place_is_one_replacement_however_many_of_its_lines_change(
    one: Handrail, workspace: Path, occurrence: Occurrence
) -> None:
    (workspace / "a.py").write_text("if x:\n    one()\n    stays()\n    two()\n")
    result = one.multi_edit(
        "a.py", [edit("if x:\n  one()\n  stays()\n  two()\n", "if x:\n  1()\n  stays()\n  2()\n", occurrence)]
    )
    assert (workspace / "a.py").read_text() == "if x:\n    1()\n    stays()\n    2()\n"
    assert [(each.replacements, each.first_line) for each in result.data.edits] == [(1, 2)]


def test_the_first_place_is_taken_however_many_there_are(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("a\n" * 100_001)
    assert one.multi_edit("a", [edit("a\n", "b\n", "first")]).ok
    assert (workspace / "a").read_text() == "b\n" + "a\n" * 100_000


def test_the_model_is_told_where_each_edit_was_made_what_was_forgiven_and_what_changed(
    one: Handrail, workspace: Path
) -> None:
    (workspace / "a.py").write_text("def f():\n    one()\n    two()\n    x = y = 0\n")
    result = one.multi_edit(
        "a.py", [edit("one()", "1()"), edit("  1()\n  two()\n", "  1()\n  2()\n"), edit("=", "-", "all")]
    )
    assert result.content == (
        "Edited a.py by 3 edits +3 −3: edits[0] in line 2, edits[1] in line 3 (found but for the indentation), "
        "edits[2] in 2 places, the first in line 4.\n"
        "@@ -1,4 +1,4 @@\n def f():\n-    one()\n-    two()\n-    x = y = 0\n+    1()\n+    2()\n+    x - y - 0\n"
    )


def test_a_long_list_of_edits_and_a_long_diff_are_shortened(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("".join(f"<{number}>\n" for number in range(1_000)))
    result = one.multi_edit("a", [edit(f"<{number}>", f"{number}") for number in range(1_000)])
    assert "edits[19] in line 20, 980 more.\n" in result.content
    assert result.content.endswith("…\n")
    assert len(result.content) < 5_000


def test_bytes_that_are_no_text_do_not_leak_into_a_refusal(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_bytes("é\n".encode() + b"total = sum(\xffprices)\n")
    error = one.multi_edit("a", [edit("total = sum(price)", "x", "first")]).error
    assert error is not None
    assert "line 2 has \ufffdprices" in error.message
    assert "\udcff" not in str(error)


def test_a_refusal_names_the_edit_and_nothing_is_changed(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("one\ntwo\none\n")
    before = (workspace / "a").read_bytes()
    for edits, code, words in (
        ([edit("two", "2"), edit("two", "3")], "NO_MATCH", "edits[1]: oldText is not in a."),
        ([edit("one", "1")], "AMBIGUOUS_MATCH", "edits[0]: oldText occurs 2 times"),
        (
            [edit("two", "2"), edit("q", "q"), edit("2", "3")],
            "NO_CHANGE",
            "edits[1]: oldText and newText are the same",
        ),
        ([edit("", "x")], "INVALID_ARGUMENT", "edits[0]: oldText is empty"),
        ([edit("two", "2"), edit("2", "two")], "NO_CHANGE", "After all edits a has its old content"),
        ([edit("one", "1", "first"), edit("q", "1", "first")], "NO_MATCH", "edits[1]: oldText is not in a."),
    ):
        error = one.multi_edit("a", edits).error
        assert error is not None
        assert error.code == code
        assert error.message.startswith(words)
        assert "Nothing was changed." in error.message
        assert (workspace / "a").read_bytes() == before
    assert one.changes() == []


def test_a_text_that_is_there_twice_is_refused_in_words_that_this_tool_knows(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("one\none\n")
    error = one.multi_edit("a", [edit("one", "1")]).error
    assert error is not None
    assert 'give it occurrence "all" or "first"' in error.message
    assert "replaceAll" not in error.message


def test_a_placeholder_in_the_place_of_real_lines_is_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "a.py").write_text("one()\ntwo()\n")
    error = one.multi_edit("a.py", [edit("one()\ntwo()", "# ... rest of the code unchanged ...")]).error
    assert error is not None
    assert error.code == "OMITTED_TEXT"
    assert error.message.startswith("edits[0]: Line 1 of newText is a placeholder")


def test_a_refusal_says_in_which_text_its_lines_are_counted(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("one\ntotal = sum(prices)\n")
    error = one.multi_edit("a", [edit("one", "1\n2\n3"), edit("total = sum(price)", "x")]).error
    assert error is not None
    assert "Closest is line 4" in error.message
    assert "Its line numbers are those after the edits before it." in error.message
    assert isinstance(error.details, dict)
    assert error.details["edit"] == 1


def test_a_missing_file_a_folder_and_no_text_are_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "folder").mkdir()
    (workspace / "binary").write_bytes(b"\0x")
    (workspace / "name.txt").write_text("x")
    codes = {
        path: getattr(one.multi_edit(path, [edit("x", "y")]).error, "code", None)
        for path in ("nam.txt", "folder", "binary")
    }
    assert codes == {"nam.txt": "NOT_FOUND", "folder": "NOT_A_FILE", "binary": "BINARY_FILE"}


def test_no_edits_and_unknown_fields_are_refused(one: Handrail) -> None:
    assert one.multi_edit("a", []).error.code == "INVALID_ARGUMENT"
    args = {"path": "a", "edits": [{"oldText": "x", "newText": "y", "occurrence": "last"}]}
    error = one.call("multi_edit", args).error
    assert error is not None
    assert error.code == "INVALID_ARGUMENT"
    assert "occurrence" in error.message


def test_a_file_that_changed_since_it_was_read_is_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    one.read("a")
    (workspace / "a").write_text("x\ny\n")
    assert one.multi_edit("a", [edit("x", "z")]).error.code == "STALE_FILE"


def test_a_person_is_asked_with_the_difference_that_all_edits_make(rail: Rail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    one = rail(mode="ask", settings=ENABLED)
    one.multi_edit("a", [edit("x", "y"), edit("y", "z")])
    [request] = one.waiting()
    assert request.preview is not None
    assert request.preview.text == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+z\n"


def test_it_is_offered_only_where_it_is_enabled(rail: Rail) -> None:
    assert MULTI_EDIT.enabled is False
    assert rail().call("multi_edit", {"path": "a", "edits": []}).error.code == "UNKNOWN_TOOL"


def test_new_text_that_is_at_the_depth_of_the_file_is_not_moved(one: Handrail, workspace: Path) -> None:
    (workspace / "a.c").write_text("void f() {\n    a();\n    b();\n}\n")
    one.read("a.c")
    result = one.multi_edit("a.c", [edit("a();\nb();", "    a(1);\n    b();"), edit("a(1);\nb();", "a(2);\nb();")])
    assert result.ok
    assert (workspace / "a.c").read_text() == "void f() {\n    a(2);\n    b();\n}\n"


@given(
    text=st.text("ab\n", max_size=30),
    edits=st.lists(
        st.tuples(
            st.text("ab", min_size=1, max_size=2),
            st.text("ab\n", max_size=3),
            st.sampled_from(["unique", "first", "all"]),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_edits_do_what_str_replace_does_one_after_the_other(
    one: Handrail, workspace: Path, text: str, edits: list[tuple[str, str, Occurrence]]
) -> None:
    (workspace / "a").write_text(text)
    one.read("a")
    expected: str | None = text
    for old, new, occurrence in edits:
        fits = (
            expected is not None
            and old != new
            and (expected.count(old) if occurrence != "unique" else _only(expected, old))
        )
        expected = (
            expected.replace(old, new, -1 if occurrence == "all" else 1) if expected is not None and fits else None
        )
    result = one.multi_edit("a", [edit(*each) for each in edits])
    assert result.ok == (expected is not None and expected != text)
    assert (workspace / "a").read_text() == (expected if result.ok else text)


def _only(text: str, old: str) -> bool:
    return old in text and text.find(old, text.find(old) + 1) < 0


def test_a_slip_at_the_edge_of_an_exact_match_is_warned_of(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("f() {\n    a();\n    b();\n}\n")
    result = one.multi_edit("a", [edit("b();", "c();"), edit("a();\n", "    d();", "first")])
    assert (workspace / "a").read_text() == "f() {\n        d();    c();\n}\n"
    twice, joined = result.warnings
    assert twice.startswith("edits[1]: Line 2 is now indented twice")
    assert joined.startswith("edits[1]: Line 2 is now joined")
