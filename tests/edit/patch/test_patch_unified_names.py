"""Which files the headers of a diff name."""

import pytest

from handrail.edit.patch.envelope import parse_patch
from handrail.protocol.errors import ToolError

HUNK = "@@ -1 +1 @@\n-1\n+2\n"
NEW = "@@ -0,0 +1 @@\n+1\n"


@pytest.mark.parametrize(
    ("names", "new", "path"),
    [
        ("c/b/new.py i/b/new.py", "i/b/new.py", "b/new.py"),
        ("b/new.py b/new.py", "b/new.py", "b/new.py"),
        ("a/new.py a/new.py", "a/new.py", "a/new.py"),
        ("a/b/new.py b/b/new.py", "b/b/new.py", "b/new.py"),
        ("before/x y after/x y", "after/x y", "x y"),
        ("a/x b/y b/x b/y", "b/x b/y", "x b/y"),
        ('"a/\\303\\251" "b/\\303\\251"', '"b/\\303\\251"', "é"),
    ],
)
def test_the_line_of_git_tells_the_prefixes(names: str, new: str, path: str) -> None:
    [file] = parse_patch(f"diff --git {names}\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ {new}\n{NEW}")
    assert file.path == path


@pytest.mark.parametrize(
    ("names", "old", "new", "path"),
    [
        ("c/b/n i/b/n", "c/b/n", "i/b/n", "b/n"),
        ("b/n b/n", "b/n", "b/n", "b/n"),
        ("a/n a/n", "a/n", "a/n", "a/n"),
        ("i/n w/n", "i/n", "w/n", "n"),
        ("n n", "n", "n", "n"),
        ("before/n after/n", "before/n", "after/n", "n"),
    ],
)
def test_it_tells_them_of_files_that_change_and_that_go(names: str, old: str, new: str, path: str) -> None:
    [changed] = parse_patch(f"diff --git {names}\nindex 0..1\n--- {old}\n+++ {new}\n{HUNK}")
    [gone] = parse_patch(f"diff --git {names}\ndeleted file mode 100644\n--- {old}\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n")
    [empty] = parse_patch(f"diff --git {names}\ndeleted file mode 100644\nindex 0..0\n")
    assert (changed.path, gone.path, empty.path) == (path, path, path)


@pytest.mark.parametrize(
    "lines",
    [
        "diff --git a/c b/d\nrename from a\nrename to b\n--- a/c\n+++ b/d\n",
        "diff --git a/a b/b\nrename from a\nrename to b\n--- a/c\n+++ b/b\n",
        "diff --git a/a b/b\nrename from a\nrename to b\n--- a/a\n+++ /dev/null\n",
        "diff --git a/c b/d\ncopy from a\ncopy to b\n--- a/a\n+++ b/b\n",
    ],
)
def test_names_that_disagree_are_refused(lines: str) -> None:
    with pytest.raises(ToolError, match=r"are other names than 'a' to 'b'\. Name the same files in every line"):
        parse_patch(lines + HUNK)


@pytest.mark.parametrize(("old", "new"), [("a/x/f", "b/y/f"), ("x/f", "y/f"), ("c/x/f", "i/y/f")])
def test_a_rename_has_its_names_without_prefixes(old: str, new: str) -> None:
    head = f"diff --git {old} {new}\nrename from x/f\nrename to y/f\n"
    for lines in (head, f"{head}--- {old}\n+++ {new}\n{HUNK}"):
        [file] = parse_patch(lines)
        assert (file.action, file.path, file.target) == ("move", "x/f", "y/f")


def test_twenty_thousand_spaces_in_a_name_come_to_an_end() -> None:
    name = f"x{' ' * 19_900}y"
    [file] = parse_patch(f"--- a/{name}\n+++ b/{name}\n{HUNK}")
    assert file.path == name
