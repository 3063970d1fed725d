"""What patches say: those that are written well, those that models write, and those that cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.edit.patch.envelope import parse_patch
from handrail.edit.patch.hunks import FilePatch, Hunk
from handrail.protocol.errors import ToolError

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def said(patch: str) -> list[tuple[str, ...]]:
    """What a patch does, in few words: action, path, target, and the lines of its hunks."""
    return [
        (file.action, file.path, *([file.target] if file.target else []), *_bodies(file)) for file in parse_patch(patch)
    ]


def _bodies(file: FilePatch) -> list[str]:
    if file.content is not None:
        return [file.content]
    return ["|".join(f"{line.sign}{line.text.removesuffix(chr(13))}" for line in hunk.lines) for hunk in file.hunks]


def hunk(patch: str) -> Hunk:
    [file] = parse_patch(patch)
    [only] = file.hunks
    return only


WELL_FORMED = {
    "a file that is added": (envelope("*** Add File: a.py", "+one", "+two"), [("add", "a.py", "one\ntwo\n")]),
    "a file without lines": (envelope("*** Add File: a.py"), [("add", "a.py", "")]),
    "a file with an empty line": (envelope("*** Add File: a", "+x", "+", "+y"), [("add", "a", "x\n\ny\n")]),
    "a file that goes": (envelope("*** Delete File: a.py"), [("delete", "a.py")]),
    "a hunk": (envelope("*** Update File: a", "@@", " x", "-y", "+z"), [("update", "a", " x|-y|+z")]),
    "a hunk without its header": (envelope("*** Update File: a", " x", "-y", "+z"), [("update", "a", " x|-y|+z")]),
    "two hunks": (envelope("*** Update File: a", "@@", "-x", "@@", "+y"), [("update", "a", "-x", "+y")]),
    "a move": (envelope("*** Update File: a", "*** Move to: b/c"), [("move", "a", "b/c")]),
    "a move with a hunk": (envelope("*** Update File: a", "*** Move to: b", "-x", "+y"), [("move", "a", "b", "-x|+y")]),
    "several files": (
        envelope("*** Delete File: a", "*** Add File: b", "+x", "*** Update File: c", "-y"),
        [("delete", "a"), ("add", "b", "x\n"), ("update", "c", "-y")],
    ),
    "a path with spaces": (envelope("*** Delete File: a b.txt "), [("delete", "a b.txt")]),
    "signs as lines": (
        envelope("*** Update File: a", "--", "++", "-- x", "++ y"),
        [("update", "a", "--|++|-- x|++ y")],
    ),
    "a diff": (DIFF, [("update", "a.py", " one|-two|+2")]),
    "two diffs": (DIFF + DIFF.replace("a.py", "b.py"), [("update", f"{n}.py", " one|-two|+2") for n in "ab"]),
    "a diff of git": (f"diff --git a/a.py b/a.py\nindex 1..2 100644\n{DIFF}", [("update", "a.py", " one|-two|+2")]),
    "a diff without prefixes": (DIFF.replace("a/", "").replace("b/", ""), [("update", "a.py", " one|-two|+2")]),
    "a folder that is called a": (DIFF.replace("b/", "a/"), [("update", "a/a.py", " one|-two|+2")]),
    "letters of git for index and work tree": (
        DIFF.replace("a/", "i/").replace("b/", "w/"),
        [("update", "a.py", " one|-two|+2")],
    ),
    "times behind the names": (
        "--- a.py\t2024-01-01 10:00:00.000 +0100\n+++ a.py\t2024-01-02\n@@ -1 +1 @@\n-x\n+y\n",
        [("update", "a.py", "-x|+y")],
    ),
    "times without a tab": (
        "--- a.py 2024-01-01 10:00:00.000 +0100\n+++ a.py 2024-01-02 11:00:00\n@@ -1 +1 @@\n-x\n+y\n",
        [("update", "a.py", "-x|+y")],
    ),
    "a copy that was compared with": ("--- a.py.orig\n+++ a.py\n@@ -1 +1 @@\n-x\n+y\n", [("update", "a.py", "-x|+y")]),
    "a new file": ("--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+x\n+y\n", [("add", "n.py", "x\ny\n")]),
    "a new file of git": (
        "diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
        [("add", "n", "x\n")],
    ),
    "a new file without a newline at its end": (
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n",
        [("add", "n", "x")],
    ),
    "an empty new file": ("diff --git a/n b/n\nnew file mode 100644\nindex 0..0\n", [("add", "n", "")]),
    "a deleted file": ("--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", [("delete", "n", "-x")]),
    "a deleted file whose hash begins like a mode": (
        "diff --git a/n b/n\ndeleted file mode 100644\nindex 1203e19..0000000\n"
        "--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        [("delete", "n", "-x")],
    ),
    "an empty deleted file": ("diff --git a/n b/n\ndeleted file mode 100644\nindex 0..0\n", [("delete", "n")]),
    "a rename": (
        "diff --git a/x y b/z\nsimilarity index 100%\nrename from x y\nrename to z\n",
        [("move", "x y", "z")],
    ),
    "a rename with a hunk": (
        "diff --git a/x b/z\nrename from x\nrename to z\n--- a/x\n+++ b/z\n@@ -1 +1 @@\n-x\n+y\n",
        [("move", "x", "z", "-x|+y")],
    ),
    "a copy": ("diff --git a/x b/z\nsimilarity index 100%\ncopy from x\ncopy to z\n", [("copy", "x", "z")]),
    "a quoted name": (
        'diff --git "a/\\303\\251\\t\\"q\\\\" "b/\\303\\251\\t\\"q\\\\"\ndeleted file mode 100644\n',
        [("delete", 'é\t"q\\')],
    ),
    "a quoted name beside one that is not": (
        'diff --git a/plain "b/\\303\\251"\nrename from plain\nrename to "\\303\\251"\n',
        [("move", "plain", "é")],
    ),
    "a name with spaces, as git ends it": (
        "--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-x\n+y\n",
        [("update", "x y", "-x|+y")],
    ),
    "a removed line that looks like a header": (
        "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- x\n+++ y\n z\n",
        [("update", "q.sql", "--- x|+++ y| z")],
    ),
    "such lines at the end of a hunk": (
        "--- a/q\n+++ b/q\n@@ -1 +1 @@\n--- x\n+++ y\n@@ -9 +9 @@\n-a\n+b\n",
        [("update", "q", "--- x|+++ y", "-a|+b")],
    ),
    "a mail": (
        f"From 1 Mon Sep 17\nSubject: [PATCH] x\n\n- a point\n---\n a.py | 2 +-\n\n{DIFF}-- \n2.39.0\n",
        [("update", "a.py", " one|-two|+2")],
    ),
}

LENIENT = {
    "blank lines around": (f"\n\n{envelope('*** Delete File: a')}\n\n\n", [("delete", "a")]),
    "a space before every line": (
        "\n".join(f" {line}" for line in envelope("*** Update File: a", "@@", " x", "-y", "+z").split("\n")),
        [("update", "a", " x|-y|+z")],
    ),
    "a space before every marker": (
        " *** Begin Patch\n *** Update File: a\n x\n-y\n *** Add File: b\n+z\n *** Delete File: c\n *** End Patch",
        [("update", "a", " x|-y"), ("add", "b", "z\n"), ("delete", "c")],
    ),
    "spaces before the first and the last marker": (
        "  *** Begin Patch\n*** Update File: a\n x\n-y\n    *** End Patch\n",
        [("update", "a", " x|-y")],
    ),
    "a space before the first header": (envelope(" *** Update File: a", "-y"), [("update", "a", "-y")]),
    "a space before a header behind whole files": (
        envelope("*** Add File: a", "+x", " *** Delete File: b", " *** Add File: c", "+y"),
        [("add", "a", "x\n"), ("delete", "b"), ("add", "c", "y\n")],
    ),
    "a marker that is a line of the file": (
        envelope("*** Update File: a", " *** Update File: b", "-y", " *** End Patch"),
        [("update", "a", " *** Update File: b|-y| *** End Patch")],
    ),
    "blank lines inside": (
        envelope("", "*** Delete File: a", "", "*** Delete File: b", ""),
        [("delete", "a"), ("delete", "b")],
    ),
    "a here-document": (f"apply_patch <<'EOF'\n{envelope('*** Delete File: a')}\nEOF\n", [("delete", "a")]),
    "a here-document in a shell": (
        f"bash -lc \"apply_patch <<'PATCH'\n{envelope('*** Delete File: a')}\nPATCH\"\n",
        [("delete", "a")],
    ),
    "a folder changed before": (
        f"cd src && apply_patch << EOF\n{envelope('*** Delete File: a')}\nEOF",
        [("delete", "a")],
    ),
    "quotes": (f"apply_patch '{envelope('*** Delete File: a')}'", [("delete", "a")]),
    "a fence": (f"Here it is:\n```diff\n{envelope('*** Delete File: a')}\n```\n", [("delete", "a")]),
    "a diff in a fence": (f"```diff\n{DIFF}```\n", [("update", "a.py", " one|-two|+2")]),
    "a diff in a here-document": (f"git apply <<'EOF'\n{DIFF}EOF\n", [("update", "a.py", " one|-two|+2")]),
    "a diff in an envelope": (envelope(*DIFF.split("\n")), [("update", "a.py", " one|-two|+2")]),
    "an empty line whose space was lost": (
        envelope("*** Update File: a", "@@", " x", "", "-y"),
        [("update", "a", " x| |-y")],
    ),
    "empty lines at the edges of a hunk": (
        envelope("*** Update File: a", "@@", "", "-y", "", "", "@@", "-z", ""),
        [("update", "a", "-y", "-z")],
    ),
    "a line whose space was lost": (
        envelope("*** Update File: a", "def f():", "-y"),
        [("update", "a", " def f():|-y")],
    ),
    "an empty line of a new file whose sign was lost": (
        envelope("*** Add File: a", "+x", "", "+y", ""),
        [("add", "a", "x\n\ny\n")],
    ),
    "line numbers in an envelope": (
        envelope("*** Update File: a", "@@ -1,2 +1,2 @@ def f():", "-y"),
        [("update", "a", "-y")],
    ),
    "carriage returns": (
        envelope("*** Update File: a", "@@ x", "-y", "+z").replace("\n", "\r\n"),
        [("update", "a", "-y|+z")],
    ),
    "carriage returns of a diff": (DIFF.replace("\n", "\r\n"), [("update", "a.py", " one|-two|+2")]),
    "counts that are too small": (DIFF.replace("-1,2 +1,2", "-1,1 +1,1"), [("update", "a.py", " one|-two|+2")]),
    "counts that are too large": (DIFF.replace("-1,2 +1,2", "-1,9 +1,9"), [("update", "a.py", " one|-two|+2")]),
    "counts that are too large before another file": (
        DIFF.replace("-1,2 +1,2", "-1,9 +1,9") + DIFF,
        [("update", "a.py", " one|-two|+2"), ("update", "a.py", " one|-two|+2")],
    ),
    "counts that are too large before another hunk": (
        DIFF.replace("-1,2 +1,2", "-1,9 +1,9") + "@@ -9 +9 @@\n-x\n+y\n",
        [("update", "a.py", " one|-two|+2", "-x|+y")],
    ),
    "no line numbers": (DIFF.replace("@@ -1,2 +1,2 @@", "@@ ... @@"), [("update", "a.py", " one|-two|+2")]),
    "an empty line in a diff whose space was lost": (
        "--- a/a\n+++ b/a\n@@ -1,3 +1,2 @@\n x\n\n-y\n",
        [("update", "a", " x| |-y")],
    ),
    "blank lines between hunks of a diff": (
        DIFF + "\n\n@@ -9 +9 @@\n-x\n+y\n\n",
        [("update", "a.py", " one|-two|+2", "-x|+y")],
    ),
    "blank lines between files of a diff": (f"{DIFF}\n\n{DIFF}", [("update", "a.py", " one|-two|+2")] * 2),
}

MALFORMED = {
    "nothing": ("", 1, "this is not a valid patch."),
    "words": ("please change a.py", 1, "this is not a valid patch."),
    "no end": ("*** Begin Patch\n*** Delete File: a", 2, "'*** End Patch'"),
    "no begin": ("*** Update File: a\n-x\n*** End Patch", 1, "'*** Begin Patch' is missing"),
    "no begin before a hunk": ("\n*** Update File: a\n@@\n-x\n*** End Patch", 2, "'*** Begin Patch' is missing"),
    "no begin and a space before the markers": (" *** Update File: a\n-x\n *** End Patch", 1, "is missing"),
    "no files": (envelope(), 2, "the patch has no file"),
    "words in an envelope": (envelope("change a.py", "*** Delete File: a"), 2, "'change a.py' is not a header"),
    "a header without a path": (envelope("*** Update File: ", "-x"), 2, "without the path"),
    "a move without a path": (envelope("*** Update File: a", "*** Move to:"), 3, "without a path"),
    "a header that nobody knows": (envelope("*** Update File: a", "-x", "*** Rename File: b"), 4, "no meaning here"),
    "lines behind a deletion": (envelope("*** Delete File: a", "-x"), 3, "nothing comes behind"),
    "an update without hunks": (envelope("*** Update File: a"), 2, "has no hunks"),
    "a hunk that changes nothing": (envelope("*** Update File: a", "@@", " x"), 3, "changes nothing"),
    "a hunk without lines": (envelope("*** Update File: a", "@@ def f"), 3, "has no lines"),
    "a new file without signs": (envelope("*** Add File: a", "+x", "y"), 4, "must begin with +"),
    "a second patch": (f"{envelope('*** Delete File: a')}\n{envelope('*** Delete File: b')}", 4, "takes one patch"),
    "a context diff": (
        "*** a\n--- b\n***************\n*** 1 ****\n",
        1,
        "Context diffs are not supported; send a unified diff (diff -u).",
    ),
    "a hunk without a file": ("@@ -1 +1 @@\n-x\n+y\n", 1, "a hunk without a file"),
    "a diff with no hunks": ("--- a/a\n+++ b/a\n", 1, "no hunk and no mode"),
    "a combined diff": ("diff --cc a\nindex 1,2..3\n", 1, "combined"),
    "two names": ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-x\n+y\n", 1, "two names"),
    "no names": ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", 1, "both names"),
    "a quote without an end": ('--- "a/x\n+++ "b/x\n@@ -1 +1 @@\n-x\n+y\n', 1, "no quote at its end"),
    "a name that is no text": ('--- "a/\\377"\n+++ "b/\\377"\n@@ -1 +1 @@\n-x\n+y\n', 1, "not UTF-8"),
    "a link": (
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n",
        1,
        "a symbolic link",
    ),
    "a submodule": ("diff --git a/l b/l\nindex 1..2 160000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-x\n+y\n", 1, "a submodule"),
    "a new file with old lines": (
        "--- /dev/null\n+++ b/n\n@@ -1,2 +1,2 @@\n x\n+y\n",
        1,
        "is a new file, but its hunks have old lines.",
    ),
    "a line in a diff that is no part of it": (f"{DIFF}def f():\n+    pass\n", 8, "is in no hunk"),
    "names that cannot be told apart": (
        "diff --git a b c b/d b/e\nold mode 100644\nnew mode 100755\n",
        1,
        "cannot be distinguished",
    ),
}


@pytest.mark.parametrize("name", WELL_FORMED)
def test_a_patch_says_what_is_done_to_which_file(name: str) -> None:
    patch, expected = WELL_FORMED[name]
    assert said(patch) == expected


@pytest.mark.parametrize("name", LENIENT)
def test_what_models_get_wrong_is_passed_over_where_that_is_safe(name: str) -> None:
    patch, expected = LENIENT[name]
    assert said(patch) == expected


@pytest.mark.parametrize("name", MALFORMED)
def test_a_patch_that_cannot_be_read_is_refused_with_its_line(name: str) -> None:
    patch, line, words = MALFORMED[name]
    with pytest.raises(ToolError) as refused:
        parse_patch(patch)
    assert refused.value.code == "INVALID_ARGUMENT"
    assert words in refused.value.message
    assert name.startswith("no begin") <= ("--- a/PATH" not in refused.value.message)
    assert refused.value.message.startswith(f"Line {line} of the patch: ")
    assert refused.value.message.endswith(" Nothing was changed.")
    assert refused.value.details == {"patchLine": line}


@pytest.mark.parametrize(
    "sign", ["GIT binary patch\nliteral 1\nIcmZPo000310RR91\n", "Binary files a/x and b/x differ\n"]
)
def test_a_binary_patch_is_refused_as_what_it_is(sign: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse_patch(f"diff --git a/x b/x\nindex 1..2 100644\n{sign}")
    assert refused.value.code == "BINARY_FILE"
    assert "Line 3 of the patch" in refused.value.message


def test_anchors_are_kept_in_order_and_without_their_signs() -> None:
    found = hunk(envelope("*** Update File: a", "@@ class Foo", "@@     def bar(self): @@", "@@", "-x"))
    assert found.anchors == ("class Foo", "    def bar(self):")


def test_the_end_of_the_file_is_told_of_its_hunk_only() -> None:
    [file] = parse_patch(envelope("*** Update File: a", "@@", "-x", "@@", "+y", "*** End of File"))
    assert [each.at_end for each in file.hunks] == [False, True]


def test_a_hunk_knows_its_number_and_its_line_in_the_patch() -> None:
    [_, file] = parse_patch(envelope("*** Delete File: a", "*** Update File: b", "@@", "-x", "@@ q", "+y"))
    assert [(each.number, each.line) for each in file.hunks] == [(1, 4), (2, 6)]


def test_a_diff_says_in_which_line_its_hunks_begin() -> None:
    assert hunk("--- a/a\n+++ b/a\n@@ -7,2 +7 @@\n x\n-y\n").stated == 7
    assert hunk("--- a/a\n+++ b/a\n@@ -7,0 +8 @@\n+y\n").stated == 7
    assert hunk("--- a/a\n+++ b/a\n@@ -7,3 +7,4 @@\n+y\n").stated is None  # it had lines around it, and lost them


@pytest.mark.parametrize(
    ("marks", "expected"),
    [(("-x", "\\", "+y"), (True, False)), (("-x", "+y", "\\"), (False, True)), (("-z", " x", "\\"), (True, True))],
)
def test_a_missing_newline_is_told_of_its_side(marks: tuple[str, ...], expected: tuple[bool, bool]) -> None:
    lines = [mark.replace("\\", "\\ No newline at end of file") for mark in marks]
    found = hunk("\n".join(["--- a/a", "+++ b/a", "@@ -1 +1 @@", *lines, ""]))
    assert (found.old_open, found.new_open) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("old mode 100644", "new mode 100755"), True),
        (("old mode 100755", "new mode 100644"), False),
        (("new file mode 100755",), True),
        (("new file mode 100644",), None),
    ],
)
def test_a_diff_may_say_that_a_file_is_executable(lines: tuple[str, ...], expected: bool | None) -> None:
    [file] = parse_patch("\n".join(["diff --git a/x b/x", *lines, ""]))
    assert file.executable is expected


def test_a_new_file_keeps_the_endings_that_a_diff_with_plain_newlines_has_for_it() -> None:
    [file] = parse_patch("--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\r\n+y\r\n")
    assert file.content == "x\r\ny\r\n"


def test_a_new_file_does_not_keep_the_endings_of_the_patch_itself() -> None:
    for patch in (envelope("*** Add File: n", "+x"), "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"):
        [file] = parse_patch(patch.replace("\n", "\r\n"))
        assert file.content == "x\n"


@pytest.mark.parametrize(
    "patch",
    [
        " " * 1_000_000,
        f"*** Begin Patch{' ' * 1_000_000}\nx",
        f"{envelope('*** Delete File: a')}\n{' ' * 1_000_000}x!",
        f"--- {' ' * 1_000_000}x\n+++ y\n@@ -1 +1 @@\n-x\n",
        f'--- "{chr(92) * 1_000_000}\n+++ y\n@@ -1 +1 @@\n-x\n',
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + "-- \n" * 200_000 + "\n" * 200_000,
        "--- a/x\n+++ b/x\n" + "@@ -1,9 +1,9 @@\n-x\n\n\n" * 50_000,
        "--- a/x\n+++ b/x\n" * 50_000,
        "diff --git a/x b/x\n" * 50_000,
        "diff --git " + "a b/" * 250_000,
        "@@\n" * 300_000,
        envelope("*** Update File: a", *["@@ x"] * 200_000, "-x"),
        envelope(*["*** Update File: a", "-x", "+y"] * 50_000),
        "\"'(" * 300_000 + "*** Begin Patc",
    ],
)  # fmt: skip
def test_a_megabyte_of_anything_comes_to_an_end(patch: str) -> None:
    try:
        assert parse_patch(patch)
    except ToolError as error:
        assert error.code == "INVALID_ARGUMENT"  # noqa: PT017  both are fine


PIECES = st.sampled_from(
    [
        "*** Begin Patch",
        "*** End Patch",
        "*** Add File: a",
        "*** Update File: a",
        "*** Move to: b",
        "*** Delete File: a",
        "*** End of File",
        "@@",
        "@@ def f",
        "@@ -1,2 +3,4 @@",
        "--- a/x",
        "+++ b/x",
        "diff --git a/x b/x",
        "rename from x",
        "rename to y",
        "new mode 100755",
        "\\ No newline at end of file",
        "-- ",
        " x",
        "-x",
        "+x",
        "",
        "EOF",
        "```",
        "GIT binary patch",
        "--- /dev/null",
        "+++ /dev/null",
        '--- "a/\\30',
        "\r",
        "\0",
        "\ufeff",
        "@@@ -1 +1 @@@",
    ]
)


@given(st.lists(PIECES | st.text(max_size=20), max_size=30))
def test_no_text_breaks_the_parser(lines: list[str]) -> None:
    try:
        files = parse_patch("\n".join(lines))
    except ToolError as error:
        files, code = (), error.code
    else:
        code = None
    assert files or code in {"INVALID_ARGUMENT", "BINARY_FILE"}
    assert all(file.path for file in files)
