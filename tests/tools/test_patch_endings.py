"""How lines end after a patch: as git has them, or as the file has them, and never otherwise without a word."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools

ENABLED = Settings(tools=Tools(enable=("apply_patch",)))
OPEN = "\\ No newline at end of file"


@pytest.fixture
def one(rail: Callable[..., Handrail]) -> Handrail:
    return rail(mode="full", settings=ENABLED)


def diff(*lines: str) -> str:
    return "\n".join(("--- a/f", "+++ b/f", *lines, ""))


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        (b"y", ["@@ -1 +1,2 @@", "+y\r", " y", OPEN], b"y\r\ny"),
        (b"y", ["@@ -1 +1,2 @@", "-y", OPEN, "+x\r", "+y", OPEN], b"x\r\ny"),
        (b"q\na\r", ["@@ -1,2 +1,2 @@", " q", "-a\r", OPEN, "+b\r", OPEN], b"q\nb\r"),
        (b"a\nb\nz\r", ["@@ -1,3 +1,2 @@", " a", " b", "-z\r", OPEN], b"a\nb\n"),
        (b"a\nb\r\nz\r", ["@@ -2,2 +2,1 @@", " b\r", "-z\r"], b"a\nb\r\n"),
        (b"a\r\nb\r\nz\r", ["@@ -2,2 +2,1 @@", " b\r", "-z\r", OPEN], b"a\r\nb\r\n"),
        (b"a\n}\r\n  c\n", ["@@ -1,4 +1,3 @@", " a", " }\r", "-  c", " "], b"a\n}\r\n"),
        (b"x\nx\r\nb\n", ["@@ -1,4 +1,3 @@", "-x", " x", " b", " "], b"x\r\nb\n"),
        (b"x\nx\r\nb\n", ["@@ -1,4 +1,3 @@", " ", "-x", " x", " b"], b"x\r\nb\n"),
        (b"  x\nx\r\nb\n", ["@@ -1,3 +1,3 @@", "-x", "+y", " x", " b"], b"  y\nx\r\nb\n"),
        (b"x\nx\r\nb\n", ["@@ -1,3 +1,2 @@", "-x", " x\r", " b"], b"x\r\nb\n"),
        (b"a\r\nb\r\n", ["@@ -1,2 +1,2 @@", " a", "-b", "+c"], b"a\r\nc\r\n"),
    ],
)
def test_a_patch_keeps_them(one: Handrail, workspace: Path, before: bytes, lines: list[str], after: bytes) -> None:
    (workspace / "f").write_bytes(before)
    result = one.apply_patch(diff(*lines))
    assert result.error is None, result.error.message
    assert (workspace / "f").read_bytes() == after


@pytest.mark.parametrize(
    "lines",
    [
        ["@@ -1,2 +1,2 @@", "-a\r", "-b\r", "+a", "+b"],
        ["@@ -1,2 +1,3 @@", "-a\r", "-b\r", "+a", "+b", "+c"],
        ["@@ -1,2 +1,3 @@", " a\r", "+c", " b\r"],
    ],
)
def test_a_patch_that_changes_them_is_refused(one: Handrail, workspace: Path, lines: list[str]) -> None:
    (workspace / "f").write_bytes(b"a\r\nb\r\n")
    (workspace / "g").write_bytes(b"1\n")
    error = one.apply_patch(f"{diff(*lines)}--- a/g\n+++ b/g\n@@ -1 +1 @@\n-1\n+2\n").error
    assert error is not None
    assert "Hunk 1 of f (line 3 of the patch): it changes line endings (CRLF to LF), and a patch" in error.message
    assert (workspace / "g").read_bytes() == b"1\n"
