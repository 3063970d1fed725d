"""A file that changed since the session read it is not overwritten; by its bytes, or its times if it is large."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.tools import read
from handrail.workspace import pages

Rail = Callable[..., Handrail]
MIB = 1 << 20


def test_the_lines_that_changed_are_named_where_they_are_known(rail: Rail, workspace: Path) -> None:
    lines = [f"line {number}\n" for number in range(1, 30)]
    (workspace / "a.txt").write_text("".join(lines))
    one, other = rail(session="one"), rail(session="other")
    one.read("a.txt")
    other.edit("a.txt", "line 10\nline 11\n", "ten\nand a half\neleven\n")
    for result in (one.edit("a.txt", "line 1\n", "x\n"), one.write("a.txt", "x\n")):
        assert result.error is not None
        assert result.error.message.startswith("a.txt changed since you read it (lines 10–12). Read it again before ")
    (workspace / "a.txt").write_text("others\n")
    error = one.edit("a.txt", "line 1\n", "x\n").error
    assert error is not None
    assert error.message.startswith("a.txt changed since you read it (line 1).")


def test_other_bytes_than_were_read_are_not_overwritten(one: Handrail, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("old")
    one.read("a.txt")
    path.write_text("changed by somebody")
    error = one.write("a.txt", "mine").error
    assert error.code == "STALE_FILE"
    assert error.retryable
    assert path.read_text() == "changed by somebody"
    one.read("a.txt")
    assert one.write("a.txt", "mine").ok


def test_a_change_of_the_same_size_and_time_is_found(one: Handrail, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("old")
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    one.read("a.txt")
    path.write_text("new")
    os.utime(path, ns=times)
    assert one.write("a.txt", "mine").error.code == "STALE_FILE"


@pytest.mark.parametrize("change", ["touch", "replace", "chmod", "there and back"])
def test_a_file_with_the_same_bytes_is_not_stale(one: Handrail, workspace: Path, change: str) -> None:
    path = workspace / "a.txt"
    path.write_text("old")
    one.read("a.txt")
    if change == "touch":
        os.utime(path, (1, 1))
    elif change == "replace":
        (workspace / "b.txt").write_text("old")
        (workspace / "b.txt").rename(path)
    elif change == "chmod":
        path.chmod(0o755)
    else:
        path.write_text("something else")
        path.write_text("old")
    assert one.write("a.txt", "mine").ok


def test_a_file_never_read_may_be_written_and_that_is_told(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    assert one.write("a.txt", "mine").meta.unread
    assert not one.write("a.txt", "again").meta.unread
    assert not one.write("new.txt", "x").meta.unread


def test_our_own_write_renews_what_is_known(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "first")
    assert one.write("a.txt", "second").ok
    (workspace / "a.txt").write_text("changed by somebody")
    assert one.write("a.txt", "third").error.code == "STALE_FILE"


def test_a_file_that_was_removed_can_be_written_again(one: Handrail, workspace: Path) -> None:
    """No bytes are lost, and reading it again first is not possible."""
    (workspace / "a.txt").write_text("old")
    one.read("a.txt")
    (workspace / "a.txt").unlink()
    result = one.write("a.txt", "mine")
    assert result.data.created
    assert result.warnings == ("a.txt was removed since you read it; it is a new file now.",)


def test_sessions_know_files_apart(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    first, second = rail(), rail()
    first.read("a.txt")
    assert second.write("a.txt", "of the second").ok
    assert first.write("a.txt", "of the first").error.code == "STALE_FILE"


def test_what_is_known_outlives_the_process(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    first = rail(session="s")
    first.read("a.txt")
    first.close()
    (workspace / "a.txt").write_text("changed by somebody")
    assert rail(session="s").write("a.txt", "mine").error.code == "STALE_FILE"


def test_a_link_and_its_target_are_one_file(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    (workspace / "link").symlink_to("a.txt")
    one.read("link")
    (workspace / "a.txt").write_text("changed by somebody")
    for path in ("a.txt", "link", "./a.txt", f"{workspace}/a.txt"):
        assert one.write(path, "mine").error.code == "STALE_FILE"


@pytest.fixture
def large(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that did not change for a while."""
    monkeypatch.setattr(read, "is_settled", lambda _: True)
    path = workspace / "large.txt"
    path.write_bytes(b"".join(b"%07d\n" % number for number in range(MIB + 200_000)))
    return path


def test_of_a_large_file_the_page_that_was_seen_counts(one: Handrail, large: Path) -> None:
    one.read("large.txt", offset=-10)
    with large.open("r+b") as file:
        file.seek(-80, os.SEEK_END)
        file.write(b"CHANGED\n")
    assert one.write("large.txt", "mine\n").error.code == "STALE_FILE"
    one.read("large.txt", offset=-10)
    assert one.write("large.txt", "mine\n").ok
    assert large.read_text() == "mine\n"


@pytest.mark.parametrize("change", ["touch", "append", "replace"])
def test_of_a_large_file_any_change_counts_whether_in_the_page_or_not(one: Handrail, large: Path, change: str) -> None:
    one.read("large.txt", limit=10)
    if change == "touch":
        os.utime(large, (1, 1))
    elif change == "append":
        with large.open("ab") as file:
            file.write(b"more\n")
    else:
        shutil.copy(large, large.with_suffix(".new"))
        large.with_suffix(".new").rename(large)
    assert one.write("large.txt", "mine\n").error.code == "STALE_FILE"
    one.read("large.txt", limit=10)
    assert one.write("large.txt", "mine\n").ok


def rewrite(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)


@pytest.mark.parametrize("mib", [2, 9])
def test_a_change_of_a_large_file_in_the_same_tick_as_the_one_before_is_found(
    one: Handrail, workspace: Path, mib: int
) -> None:
    path = workspace / "a.txt"
    path.write_bytes(b"line\n" * (mib * MIB // 5))
    for _ in range(10):
        rewrite(path, b"seen")
        one.read("a.txt", offset=100, limit=10)
        rewrite(path, b"LINE")
        assert one.edit("a.txt", "LINE", "mine").error.code == "STALE_FILE"


def test_a_file_that_was_changed_and_changed_back_in_one_tick_is_not_stale(one: Handrail, workspace: Path) -> None:
    """Its times cannot tell, so its bytes do."""
    path = workspace / "a.txt"
    is_young = False
    while not is_young:
        path.write_bytes(b"line\n" * (2 * MIB // 5))
        one.read("a.txt", limit=10)
        is_young = not pages.is_settled(path.stat())
    rewrite(path, b"LINE")
    rewrite(path, b"line")
    assert one.write("a.txt", "mine\n").ok


def test_times_that_a_later_change_may_repeat_are_not_trusted(workspace: Path) -> None:
    """Whole hundredths of a second are of a file system that may keep two seconds as one."""
    (workspace / "a").touch()
    now = (workspace / "a").stat()
    for age, digit, settled in ((0, 1, False), (10**9, 1, True), (10**9, 0, False), (3 * 10**9, 0, True)):
        stamp = (time.time_ns() - age) // 10**7 * 10**7 + digit
        assert pages.is_settled(os.stat_result([*now[:10]], {"st_ctime_ns": stamp})) == settled


def test_a_large_file_that_became_short_is_stale(one: Handrail, large: Path) -> None:
    one.read("large.txt", offset=-10)
    os.truncate(large, 1_000)
    assert one.write("large.txt", "mine\n").error.code == "STALE_FILE"


def test_the_check_is_repeated_after_an_approval_however_late(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    one = rail(mode="ask")
    one.read("a.txt")
    one.write("a.txt", "mine")
    (workspace / "a.txt").write_text("changed while somebody thought about it")
    result = one.answer(one.waiting()[0].id, "once").results[0]
    assert result.error.code in {"STALE_FILE", "CONFLICT"}
    assert (workspace / "a.txt").read_text() == "changed while somebody thought about it"
