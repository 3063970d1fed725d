"""Where hunks belong: exactly where they say, or in the one place that there is for them."""

import pytest
from patches import CLASSES, by_diff, fit, made, refusal

from handrail.edit.lines import apply_replacements
from handrail.protocol.errors import ToolError

BRACES = """\
int first(int a)
{
    return a;
}

int second(
    int b
) {
    if (b) {
        return a;
    }
    return a;
}
"""


def test_lines_that_are_there_once_are_replaced() -> None:
    found = fit("a\nb\nc\n", " a", "-b", "+B")
    assert apply_replacements("a\nb\nc\n", found.replacements) == "a\nB\nc\n"
    assert found.strategies == ("exact",)


def test_lines_that_stay_are_not_touched() -> None:
    [first, second] = fit("a\nb\nc\nd\n", "-a", "+A", " b", " c", "-d", "+D").replacements
    assert (first, second) == ((0, 2, "A\n"), (6, 8, "D\n"))


def test_only_whole_lines_count() -> None:
    assert made("xab\nab\n", "-ab", "+c") == "xab\nc\n"
    assert refusal("xab\n", "-ab", "+c").code == "NO_MATCH"


def test_lines_that_are_there_twice_are_refused_with_their_lines() -> None:
    error = refusal(CLASSES, "-        return 1", "+        return 2")
    assert error.code == "AMBIGUOUS_MATCH"
    assert error.message.startswith("Hunk 1 of a (line 3 of the patch): its old lines occur 3 times (lines 3, 6, 11).")
    assert "an @@ line" in error.message
    assert error.message.endswith("Nothing was changed.")
    assert isinstance(error.details, dict)
    assert (error.details["hunk"], error.details["patchLine"], error.details["path"]) == (1, 3, "a")


@pytest.mark.parametrize(
    ("anchors", "line"),
    [
        (["@@ class B"], 11),
        (["@@ class B:"], 11),
        (["@@ class A", "@@ def second"], 6),
        (["@@ class A", "@@     def second(self):"], 6),
        (["@@ def second(self):"], 6),
        (["@@ class B", "@@ def first"], 11),
        (["@@ class A", "@@ def first"], 3),
    ],
)
def test_an_anchor_says_which_of_them(anchors: list[str], line: int) -> None:
    expected = CLASSES.split("\n")
    expected[line - 1] = "        return 2"
    assert made(CLASSES, *anchors, "-        return 1", "+        return 2") == "\n".join(expected)


def test_an_anchor_counts_up_to_the_brace_that_closes_what_it_opens() -> None:
    assert made(BRACES, "@@ int first", "-    return a;", "+    return 0;") == BRACES.replace(
        "return a;", "return 0;", 1
    )
    after = BRACES[::-1].replace(";a nruter    \n}", ";0 nruter    \n}", 1)[::-1]
    assert made(BRACES, "@@ int second(", "-    return a;", "+    return 0;") == after


def test_a_hunk_may_repeat_its_anchor_as_its_first_line() -> None:
    after = CLASSES.replace("class B:\n    def first", "class B:\n    def last")
    assert made(CLASSES, "@@ class B:", " class B:", "-    def first(self):", "+    def last(self):") == after


def test_an_anchor_that_names_two_places_where_the_lines_are_is_refused() -> None:
    assert refusal(CLASSES, "@@ def first", "-        return 1", "+        return 2").code == "AMBIGUOUS_MATCH"


def test_an_anchor_that_begins_in_the_middle_of_a_word_names_nothing() -> None:
    error = refusal("def foobar():\n    x\n", "@@ def foo", "-    x", "+    y")
    assert error.code == "NO_MATCH"
    assert "there is no line 'def foo', which its @@ line names. Near: line 1, 'def foobar():'." in error.message


def test_hunks_go_in_the_order_of_the_file() -> None:
    assert made("x\na\nx\nb\n", " a", "-x", "+y", "@@", "-b", "+c") == "x\na\ny\nc\n"
    error = refusal("a\nb\nc\n", "-c", "+C", "@@", "-a", "+A")
    assert "Hunk 2 of a (line 5 of the patch): its old lines are in line 1, which is not behind hunk 1" in error.message


def test_an_anchor_may_be_named_again_for_a_later_hunk_in_it() -> None:
    hunks = (
        "@@ class A",
        "-        return 1",
        "+        return 2",
        "@@ class A",
        "@@ def second",
        "-        return 1",
        "+3",
    )
    error = refusal(CLASSES, *hunks)
    assert error.code == "AMBIGUOUS_MATCH"  # the first of them
    hunks = (
        "@@ class A",
        "-    def first(self):",
        "+    def one(self):",
        "@@ class A",
        "-    def second(self):",
        "+    pass",
    )
    expected = CLASSES.replace("first", "one", 1).replace("    def second(self):", "    pass")
    assert made(CLASSES, *hunks) == expected
    error = refusal(CLASSES, "@@ class A", "-    def first(self):", "+    x", "@@ class A", "+    y")
    assert "its @@ line is line 1, before hunk 1, and hunks go in the order of the file" in error.message


def test_a_later_hunk_is_looked_for_behind_the_one_before() -> None:
    assert made("x\na\nx\n", " x", "-a", "+b", "@@", "-x", "+y") == "x\nb\ny\n"


def test_a_diff_is_taken_at_its_word_where_the_lines_are_there_several_times() -> None:
    text = "".join(f"x\n{number}\n" for number in range(5))
    assert by_diff(text, "@@ -5 +5 @@", "-x", "+y") == text.replace("x\n2\n", "y\n2\n")


def test_how_far_one_hunk_was_off_counts_for_the_next() -> None:
    text = "new\nnew\n" + "".join(f"x\n{number}\n" for number in range(5))
    hunks = ("@@ -1,2 +1,2 @@", " x", "-0", "+zero", "@@ -7 +7 @@", "-x", "+y")
    assert by_diff(text, *hunks) == text.replace("\n0\n", "\nzero\n").replace("x\n3\n", "y\n3\n")


def test_a_diff_with_wrong_numbers_is_put_where_its_lines_are() -> None:
    assert by_diff("a\nb\nc\n", "@@ -40,2 +40,2 @@", " b", "-c", "+C") == "a\nb\nC\n"


def test_new_lines_alone_in_a_diff_need_a_place() -> None:
    with pytest.raises(ToolError, match=r"it only adds lines, and its place is unknown.") as refused:
        by_diff("a\nb\n", "@@ ... @@", "+c")
    assert refused.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("a\nb\n", ["+c"], "a\nb\nc\n"),
        ("a\nb\n", ["@@", "+c", "+d"], "a\nb\nc\nd\n"),
        ("a\nb", ["+c"], "a\nb\nc"),
        ("a\nb\n", ["-a", "+A", "@@", "+c"], "A\nb\nc\n"),
    ],
)
def test_new_lines_alone_in_an_envelope_go_to_the_end_of_the_file(text: str, lines: list[str], expected: str) -> None:
    assert made(text, *lines) == expected


def test_no_hunk_comes_behind_new_lines_at_the_end_of_the_file() -> None:
    assert "hunks go in the order of the file" in refusal("a\nb\n", "+c", "@@", "-a").message


def test_new_lines_go_behind_their_anchor() -> None:
    assert made("a\nb\nc\n", "@@ b", "+new") == "a\nb\nnew\nc\n"
    assert refusal("b\na\nb\n", "@@ b", "+new").code == "AMBIGUOUS_MATCH"


def test_new_lines_go_to_the_end_of_the_file() -> None:
    assert made("a\nb\n", "+c", "*** End of File") == "a\nb\nc\n"
    assert made("", "+c") == "c\n"


def test_new_lines_go_behind_the_line_that_a_diff_says() -> None:
    assert by_diff("a\nb\n", "@@ -1,0 +2 @@", "+c") == "a\nc\nb\n"
    assert by_diff("a\nb\n", "@@ -0,0 +1 @@", "+c") == "c\na\nb\n"
    with pytest.raises(ToolError, match="behind line 9, and a has 2"):
        by_diff("a\nb\n", "@@ -9,0 +10 @@", "+c")


def test_the_end_of_the_file_is_preferred_where_it_is_said() -> None:
    assert made("x\ny\nx\n", "-x", "+z", "*** End of File") == "x\ny\nz\n"


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("a\nb", ["-b", "+c"], "a\nc"),
        ("a\nb", [" b", "+c"], "a\nb\nc"),
        ("a\nb", [" a", "-b"], "a\n"),
        ("a\nb", ["+x", " a", " b"], "x\na\nb"),
        ("a\nb", ["+c", "*** End of File"], "a\nb\nc"),
        ("a", ["-a"], ""),
        ("a\nb\n", ["-b", "+c"], "a\nc\n"),
    ],
)
def test_the_newline_at_the_end_stays_as_it_is(text: str, lines: list[str], expected: str) -> None:
    assert made(text, *lines) == expected


NO_NEWLINE = "\\ No newline at end of file"


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("a\nb", ["@@ -2 +2 @@", "-b", NO_NEWLINE, "+b"], "a\nb\n"),
        ("a\nb\n", ["@@ -2 +2 @@", "-b", "+b", NO_NEWLINE], "a\nb"),
        ("a\nb", ["@@ -1,2 +1,2 @@", "-a", "+c", " b", NO_NEWLINE], "c\nb"),
        ("a\nb", ["@@ -1,2 +1 @@", " a", "-b", NO_NEWLINE], "a\n"),
        ("a\nb", ["@@ -1,2 +1 @@", "-a", "-b", NO_NEWLINE, "+a", NO_NEWLINE], "a"),
        ("a\nb\n", ["@@ -1,2 +1,2 @@", "-a", "+c", " b", NO_NEWLINE], "c\nb\n"),
    ],
)
def test_a_diff_may_add_it_or_take_it_away(text: str, lines: list[str], expected: str) -> None:
    assert by_diff(text, *lines) == expected


def test_what_is_not_there_is_refused_as_edit_refuses_it() -> None:
    text = "def total(prices):\n    return round(sum(prices), 2)\n"
    error = refusal(text, "@@", "-    return rounded(sum(price))", "+    return 0")
    assert error.code == "NO_MATCH"
    assert error.message.startswith("Hunk 1 of a (line 3 of the patch): its old text is not in a. Closest is line")
    assert "oldText" not in error.message


def test_ten_thousand_hunks_are_found_by_an_index() -> None:
    text = "".join(f"line {number}\nsame\n" for number in range(10_000))
    body = [line for n in range(10_000) for line in ("@@", f" line {n}", "-same", f"+other {n}")]
    assert made(text, *body) == "".join(f"line {number}\nother {number}\n" for number in range(10_000))


def test_a_diff_of_ten_thousand_hunks_of_equal_lines_is_taken_at_its_word() -> None:
    text = "same\n" * 30_000
    body = [line for n in range(10_000) for line in (f"@@ -{3 * n + 2} +{3 * n + 2} @@", "-same", "+other")]
    assert by_diff(text, *body) == "same\nother\nsame\n" * 10_000


@pytest.mark.parametrize("anchor", ["class Big", "class Big:", "    def f{}", "def f{}"])
def test_ten_thousand_hunks_behind_anchors_come_to_an_end(anchor: str) -> None:
    text = "class Big:\n" + "".join(f"    def f{number}(self):\n        pass\n" for number in range(10_000))
    body = [
        line
        for n in range(10_000)
        for line in (f"@@ {anchor.format(n)}", f"-    def f{n}(self):", f"+    def g{n}(self):")
    ]
    assert made(text, *body) == text.replace("def f", "def g")


def test_more_places_of_an_anchor_than_are_looked_into_make_nothing_unique() -> None:
    text = "def f():\n    a\n" + "def f():\n    b\n" * 200 + "def f():\n    a\n"
    assert refusal(text, "@@ def f", "-    a", "+    c").code == "AMBIGUOUS_MATCH"
    assert refusal(text, "@@ def f", "+    c").code == "AMBIGUOUS_MATCH"


def test_a_million_characters_that_match_nothing_come_to_an_end() -> None:
    text = "same\n" * 20_000
    for lines in (["-same\t"] * 1_000, [f"-{'x' * 1_000_000}"], ["@@ same x"] * 10_000 + ["-y"]):
        assert refusal(text, *lines, "+new").code in {"NO_MATCH", "AMBIGUOUS_MATCH"}


def test_lines_of_a_hunk_that_are_at_another_depth_alike_are_moved() -> None:
    text = "void f() {\n    a();\n    b();\n}\n"
    assert made(text, "@@", " a();", "-b();", "+b(1);") == text.replace("b()", "b(1)")
    assert made(text, "@@", "-a();", "-b();", "+    a(1);", "+    b();") == text.replace("a()", "a(1)")


def test_a_hunk_whose_new_lines_alone_are_at_the_depth_of_the_file_is_refused() -> None:
    text = "void f() {\n    a();\n    b();\n}\n"
    for lines in ((" a();", "-b();", "+    b(1);"), (" a();", "+    c();", " b();")):
        error = refusal(text, "@@", *lines)
        assert error.code == "NO_MATCH"
        assert "some lines of its new text are indented as its old text, others as the file" in error.message
