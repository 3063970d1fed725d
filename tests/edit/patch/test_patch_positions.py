"""A hunk is whole lines, and it is where its anchor, its line number and its order say, or nowhere."""

from itertools import product

import pytest
from patches import CLASSES, by_diff, fit, made, refusal

from handrail.edit.patch.apply import apply_hunks
from handrail.edit.patch.envelope import parse_patch
from handrail.protocol.errors import ToolError

BODY = "def f():\n    a = 1\n    b = 2\n"


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (BODY, ["@@ def f():", "-   a = 1"], "def f():\n    b = 2\n"),
        ("x\n    a\ny\n", ["-a"], "x\ny\n"),
        (BODY, ["+z = 0", " a = 1"], "def f():\n    z = 0\n    a = 1\n    b = 2\n"),
        ("def f():\n    return 1\n", ["-return 1", "+x = 1", "+return x"], "def f():\n    x = 1\n    return x\n"),
        (BODY, [" a = 1", "-    b = 2", "+    b = 3"], "def f():\n    a = 1\n    b = 3\n"),
        ("x\n    a", ["-a", "+b"], "x\n    b"),
    ],
)
def test_too_little_indentation_moves_whole_lines(text: str, lines: list[str], expected: str) -> None:
    assert made(text, *lines) == expected
    assert fit(text, *lines).strategies != ("exact",)


def test_a_part_of_a_line_is_no_place() -> None:
    assert refusal("value = compute(12)\n", "-compute(12)", "+compute(13)").code == "NO_MATCH"


def test_lines_that_stay_keep_theirs_where_a_tolerant_hunk_takes_the_last_one() -> None:
    [only] = fit("a\n}\n  c\n", " a", " }", "- c").replacements
    assert only == (4, 8, "")


def test_lines_outside_of_the_anchor_are_not_taken() -> None:
    text = CLASSES.replace("return 1", "return 2", 1)
    error = refusal(text, "@@ class A:", "@@     def first(self):", "-        return 1", "+        return 3")
    assert "in line 6, which is not inside the block of its @@ line. Correct" in error.message
    text = "class A:\n    def f(self):\n        return 2\n\nclass B:\n    def f(self):\n        return 1\n"
    error = refusal(text, "@@ class A:", "@@     def f(self):", "-        return 1", "+        return 3")
    assert error.code == "NO_MATCH"
    assert "its old lines are in line 7, which is not inside the block of its @@ line. Correct" in error.message


def test_an_anchor_is_looked_for_inside_the_one_before() -> None:
    text = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def g(self):\n        return 1\n"
    error = refusal(text, "@@ class A:", "@@ def g", "-        return 1", "+        return 3")
    assert error.code == "NO_MATCH"
    assert "no line 'def g' in what belongs to 'class A:', which its @@ line names. Near: line 6" in error.message


def test_a_hunk_may_end_behind_what_belongs_to_its_anchor() -> None:
    text = "def f():\n    return 1\n\ndef g():\n    return 1\n"
    hunk = ("@@ def f", "     return 1", " ", "+x = 1", " def g():")
    assert made(text, *hunk) == text.replace("def g", "x = 1\ndef g")


def test_an_anchor_that_nothing_belongs_to_leads_to_the_lines_behind_it() -> None:
    text = "# one\nx = 1\n# two\nx = 1\ny = 2\n"
    assert made(text, "@@ # two", "-x = 1", "+x = 2") == "# one\nx = 1\n# two\nx = 2\ny = 2\n"
    assert made(text, "@@ # one", "-y = 2", "+y = 3") == text.replace("y = 2", "y = 3")
    inside = "def f():\n    a\n    b\n\ndef g():\n    c\n"
    assert refusal(inside, "@@     a", "-    c", "+    d").code == "NO_MATCH"


def test_a_line_for_the_preprocessor_does_not_end_a_function() -> None:
    text = "int f()\n{\n    a;\n#ifdef X\n    b;\n#endif\n}\nint g()\n{\n    b;\n}\n"
    assert made(text, "@@ int f", "-    b;", "+    c;") == text.replace("    b;", "    c;", 1)


def test_hunks_out_of_order_are_no_guess() -> None:
    text = "p\nx = 1\nq\nm\nr\nx = 1\n"
    error = refusal(text, "-m", "+M", "@@", "-x = 1", "+x = 2")
    assert error.code == "AMBIGUOUS_MATCH"
    assert "Hunk 2 of a (line 5 of the patch): its old lines occur 2 times (lines 2, 6)." in error.message
    error = refusal(text.replace("x = 1", "x = 1 "), "-m", "+M", "@@", "-x = 1", "+x = 2")
    assert error.code == "AMBIGUOUS_MATCH"
    assert made(text, "-m", "+M", "@@ r", "-x = 1", "+x = 2") == "p\nx = 1\nq\nM\nr\nx = 2\n"
    assert by_diff(text, "@@ -4 +4 @@", "-m", "+M", "@@ -6 +6 @@", "-x = 1", "+x = 2").endswith("M\nr\nx = 2\n")


def test_what_is_not_at_the_end_of_the_file_is_refused_where_that_is_said() -> None:
    error = refusal("a\nb\nc\n", "-a", "+c", "*** End of File")
    assert error.code == "NO_MATCH"
    assert "in line 1, which is not at the end of the file, as *** End of File says." in error.message
    assert made("a\nb\n\n", "-b", "+c", "*** End of File") == "a\nc\n\n"


def test_five_thousand_anchors_that_begin_alike_come_to_an_end() -> None:
    count = 5_000
    text = "def foo bar baz:\n" + "".join(f"    def foo(x{n})\n" for n in range(count))
    hunks = [line for n in range(count) for line in ("@@ def foo bar", f"-    def foo(x{n})", f"+    def foo(y{n})")]
    assert made(text, *hunks) == text.replace("(x", "(y")


def test_lines_of_two_kinds_in_every_order_come_to_an_end() -> None:
    length = 12
    order = "".join("".join(each) for each in product("01", repeat=length)) + "0" * length
    text = "".join(f"{kind}\n" for kind in order)
    for start in range(0, 20_000, 400):
        hunk = [f" {kind}" for kind in order[start : start + 60]]
        assert made(text, *hunk, "+new").count("new") == 1


def test_long_hunks_of_lines_that_repeat_come_to_an_end() -> None:
    text, long = "a\nb\n" * 100_000, [" a", " b"] * 25_000
    assert "more than 40 times (lines 1, 3, 5, …)" in refusal(text, *long, "+x").message
    assert refusal(text, *long, " b", "+x").code == "NO_MATCH"
    assert refusal("x\n" + "\n" * 50_000, "-y", *[" "] * 20_000, "*** End of File").code == "NO_MATCH"


def test_blocks_that_go_on_for_ever_come_to_an_end() -> None:
    text = "if (a) {\n" + "} else {\n" * 20_000 + "}\n"
    hunks = [line for _ in range(1_000) for line in ("@@ if (a) {", "+x")]
    assert refusal(text, *hunks).code == "NO_MATCH"


def test_a_refusal_quotes_the_file_as_it_is() -> None:
    error = refusal("value = call(oldText, 1)\n", "-value = call(anything, 2)", "+x")
    assert error.code == "NO_MATCH"
    assert "its old text is not in a." in error.message
    assert "line 1 has oldText" in error.message


def test_bytes_that_are_no_text_are_named_as_such() -> None:
    [file] = parse_patch("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n a\n-b \ufffd\n+c\n")
    with pytest.raises(ToolError) as refused:
        apply_hunks("a\nb \udcef\n", file.hunks, "a", "a\nb \ufffd\n")
    assert "its old text holds U+FFFD, which replaces bytes of a that are not text" in refused.value.message
