"""Which lines of a patch are a hunk's: empty ones, ones without a sign, and what stands between hunks."""

import pytest
from patches import by_diff, made, refusal

from handrail.edit.patch.envelope import parse_patch
from handrail.edit.patch.hunks import Hunk
from handrail.protocol.errors import ToolError

LONG = "h\n\na\nb\nc\nd\n" + "x\n" * 8 + "e\n"


def hunks(*lines: str) -> tuple[Hunk, ...]:
    [file] = parse_patch("\n".join(["--- a/a", "+++ b/a", *lines, ""]))
    return file.hunks


def body(hunk: Hunk) -> list[str]:
    return [f"{line.sign}{line.text}" for line in hunk.lines]


def malformed(*lines: str) -> str:
    with pytest.raises(ToolError) as refused:
        hunks(*lines)
    assert refused.value.code == "INVALID_ARGUMENT"
    return refused.value.message


def test_an_empty_line_at_an_edge_that_is_counted_is_a_blank_line_of_the_file() -> None:
    lines = ("@@ -2,3 +2,3 @@", "", "-a", "+A", " b", "@@ -9,3 +9,3 @@", " x", "-x", "+Y", " x")
    expected = LONG.replace("a", "A").split("\n")
    expected[9] = "Y"
    assert by_diff(LONG, *lines) == "\n".join(expected)
    assert by_diff("a\n\nb\n", "@@ -2 +2,2 @@", "", "+n") == "a\n\nn\nb\n"
    assert by_diff("a\n\nb\n", "@@ -1,2 +1,3 @@", " a", "+n", "") == "a\nn\n\nb\n"
    assert made("\na\n\na\n", "@@ -3,2 +3,2 @@", "", "-a", "+b") == "\na\n\nb\n"


def test_an_empty_line_at_an_edge_that_is_not_counted_is_none() -> None:
    [only] = hunks("@@ -3 +3 @@", "", "-a", "+A", "")
    assert (body(only), only.stated) == (["-a", "+A"], 3)


def test_where_counts_are_wrong_nothing_is_stated_behind_an_empty_line() -> None:
    [only] = hunks("@@ -3,9 +3,9 @@", "", "-a", "+A")
    assert (body(only), only.stated) == (["-a", "+A"], None)


def test_a_blank_line_behind_an_anchor_is_a_line_of_the_file() -> None:
    text = "def f():\n\n    old()\n"
    assert made(text, "@@ def f():", " ", "+    new()") == "def f():\n\n    new()\n    old()\n"
    assert made(text, "@@ def f():", "", "+    new()") == "def f():\n    new()\n\n    old()\n"


def test_a_backslash_begins_a_line_of_the_file_where_no_space_follows() -> None:
    text = "old\n\\item\nend\n"
    assert made(text, "-old", "\\item", "+new", " end") == "\\item\nnew\nend\n"
    said = malformed("@@ -1,3 +1,3 @@", "-old", "\\item", "+new", " end")
    assert "Line 5 of the patch: '\\\\item' must begin with a space, - or +" in said
    assert "Line 6" in malformed("@@ -1,2 +1,2 @@", "-old", "+new", "\\item")


def test_a_line_without_a_sign_is_named() -> None:
    error = refusal("a\nb\nc\n", "-a", "+A", "bee", " c")
    assert error.message.endswith("Line 5 of the patch must begin with a space, - or +. Nothing was changed.")
    assert "Line 6 of the patch: 'b' must begin" in malformed("@@ -1,3 +1,3 @@", "-a", "+A", "b", " c")


def test_a_begin_of_an_envelope_inside_of_a_diff_is_a_line_of_it() -> None:
    [only] = hunks("@@ -1 +1,3 @@", "-1", '+P = """*** Begin Patch', "+*** Add File: x", '+*** End Patch"""')
    assert body(only)[1] == '+P = """*** Begin Patch'


def test_a_name_in_the_header_of_a_hunk_without_numbers_is_an_anchor() -> None:
    text = "class A:\n    f = 1\nclass B:\n    f = 1\n"
    assert by_diff(text, "@@ class B @@", "-    f = 1", "+    f = 2") == text[:-2] + "2\n"
    for nothing in ("@@", "@@ @@", "@@ ... @@", "@@ -1,2 +1,2", "@@ -,+ @@"):
        assert hunks(nothing, "-a")[0].anchors == ()


def test_several_mails_are_one_patch() -> None:
    mail = (
        "From {0} Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: [PATCH] x\n\n- bullet\n+ bullet\n---\n"
        " f | 2 +-\n 1 file changed\n\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n"
        "@@ -1{1} +1{1} @@\n-{0}\n+{0}0\n-- \n2.39.5\n\n\n"
    )
    for counts in ("", ",3"):
        found = parse_patch(mail.format(1, counts) + mail.format(2, counts))
        assert [body(hunk) for file in found for hunk in file.hunks] == [["-1", "+10"], ["-2", "+20"]]
