"""edit: what somebody changed since it was read, approved or looked at is not lost."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.tools import read

Rail = Callable[..., Handrail]


def test_a_file_that_changed_since_it_was_read_is_not_edited(one: Handrail, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one\ntwo\n")
    one.read("a.txt")
    path.write_text("one\ntwo\nthree\n")
    error = one.edit("a.txt", "two", "2").error
    assert (error.code, error.message) == (
        "STALE_FILE",
        "a.txt changed since you read it. Read it again before editing.",
    )
    assert error.retryable
    assert path.read_text() == "one\ntwo\nthree\n"
    one.read("a.txt")
    assert one.edit("a.txt", "two", "2").ok


def test_the_bytes_count_and_not_the_times(one: Handrail, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one")
    one.read("a.txt")
    path.write_text("another")
    path.write_text("one")
    os.utime(path, (1, 1))
    assert one.edit("a.txt", "one", "two").ok


def test_a_file_never_read_is_edited_and_that_is_told(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one")
    assert one.edit("a.txt", "one", "two").meta.unread
    assert not one.edit("a.txt", "two", "three").meta.unread


def test_our_own_edit_and_write_renew_what_is_known(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "one")
    assert one.edit("a.txt", "one", "two").ok
    assert one.write("a.txt", "three").ok
    (workspace / "a.txt").write_text("changed by somebody: three")
    assert one.edit("a.txt", "three", "four").error.code == "STALE_FILE"


def test_a_page_of_a_large_file_counts_as_the_file_was(
    one: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "is_settled", lambda _: True)
    path = workspace / "large.txt"
    path.write_bytes(b"a line of it\n" * 800_000 + b"the end\n")
    one.read("large.txt", offset=-10)
    with path.open("r+b") as file:
        file.seek(-9, os.SEEK_END)
        file.write(b"!")
    assert one.edit("large.txt", "the end", "END").error.code == "STALE_FILE"
    one.read("large.txt", limit=10)
    assert one.edit("large.txt", "the end", "END").ok


def test_a_file_that_was_removed_is_missing(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one")
    one.read("a.txt")
    (workspace / "a.txt").unlink()
    assert one.edit("a.txt", "one", "two").error.code == "NOT_FOUND"
    assert os.listdir(workspace) == []


@pytest.mark.parametrize("read_first", [True, False])
@pytest.mark.parametrize("change", ["another text", "removed", "another file"])
def test_an_approval_that_came_late_overwrites_nothing(
    rail: Rail, workspace: Path, read_first: bool, change: str
) -> None:
    path = workspace / "a.txt"
    path.write_text("one\ntwo\n")
    one = rail(mode="ask")
    if read_first:
        one.read("a.txt")
    one.edit("a.txt", "two", "2")
    if change == "removed":
        path.unlink()
    elif change == "another text":
        path.write_text("one\ntwo\nchanged while somebody thought about it\n")
    else:
        (workspace / "b.txt").write_text("two of another file\n")
        (workspace / "b.txt").rename(path)
    kept = path.read_text() if path.exists() else None
    result = one.answer(one.waiting()[0].id, "once").results[0]
    assert result.error.code in {"STALE_FILE", "CONFLICT", "NOT_FOUND"}
    assert (path.read_text() if path.exists() else None) == kept


def test_what_another_program_puts_there_meanwhile_is_never_lost(
    one: Handrail, workspace: Path, tmp_path: Path, meanwhile: Callable[..., object], count: Callable[[int], int]
) -> None:
    """It replaces the file over and over, numbered, while we edit another part of it: its last number is there."""
    path, last = workspace / "a.txt", tmp_path / "last"
    path.write_text("0\nmark\n")
    replaces = """
with open(sys.argv[2], "w") as file:
    file.write(f"{turn}\\nmark\\n")
os.replace(sys.argv[2], sys.argv[1])
sum(range(turn % 100_000))  # sometimes at once, sometimes later
with open(sys.argv[3], "w") as file:
    file.write(str(turn))
"""
    codes: set[str] = set()
    edited = 0
    with meanwhile(replaces, path, tmp_path / "new", last):
        start, turns = time.monotonic(), 0
        while turns < count(1_000) or (not edited and time.monotonic() - start < 20):  # a slow machine needs longer
            turns += 1
            one.read("a.txt")
            result = one.edit("a.txt", "mark", "MARK")
            edited += result.ok
            codes |= {result.error.code} if result.error else set()
    assert path.read_text().split("\n")[0] == last.read_text()
    assert edited
    assert codes <= {"CONFLICT", "STALE_FILE", "NO_MATCH"}
