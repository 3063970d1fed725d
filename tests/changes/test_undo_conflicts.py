"""undo never overwrites what others changed since: it says by what, and offers what is left to do."""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.errors import ErrorInfo

Rail = Callable[..., Handrail]
OLD = "".join(f"line {number}\n" for number in range(40))


@pytest.fixture
def one(rail: Rail) -> Handrail:
    return rail(session="s")


def refused(one: Handrail, number: int | None = None, **options: object) -> ErrorInfo:
    error = one.undo(number, **options).error  # type: ignore[arg-type]
    assert error is not None
    assert error.code == "CONFLICT"
    return error


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("theirs")


def make_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("elsewhere")


def make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


OUTSIDE: dict[str, Callable[[Path], object]] = {
    "changed": lambda path: path.write_text("theirs"),
    "removed": Path.unlink,
    "became a folder": make_folder,
    "became a link": make_link,
    "became a FIFO": make_fifo,
}


@pytest.mark.parametrize("how", OUTSIDE)
@pytest.mark.parametrize("existed", [True, False])
def test_what_others_did_to_a_file_stays(one: Handrail, workspace: Path, how: str, existed: bool) -> None:
    path = workspace / "a.txt"
    if existed:
        path.write_text("old")
    one.write("a.txt", "new")
    OUTSIDE[how](path)
    before = os.lstat(path) if os.path.lexists(path) else None
    error = refused(one)
    by_hand = "To revert by hand, see: handrail diff 1"
    assert error.message == f"Undo 1: a.txt was changed since, not by handrail. Nothing was undone. {by_hand}"
    assert error.details == {"conflicts": [{"path": "a.txt", "changedBy": []}], "choices": []}
    after = os.lstat(path) if os.path.lexists(path) else None
    assert (before and (before.st_ino, before.st_mtime_ns)) == (after and (after.st_ino, after.st_mtime_ns))
    assert one.changes()[0].in_effect


def test_a_file_that_became_a_folder_is_not_touched_even_by_lines(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "new")
    make_folder(workspace / "a.txt")
    refused(one, resolve="lines")
    assert (workspace / "a.txt" / "inside").read_text() == "theirs"


def test_a_link_on_the_way_is_not_followed(one: Handrail, workspace: Path, tmp_path: Path) -> None:
    one.write("folder/a.txt", "new")
    (workspace / "folder").rename(tmp_path / "away")
    (workspace / "folder").symlink_to(tmp_path / "away")
    refused(one)
    refused(one, resolve="lines")
    assert (tmp_path / "away" / "a.txt").read_text() == "new"


def test_a_file_on_the_way_is_not_touched(one: Handrail, workspace: Path) -> None:
    one.write("folder/a.txt", "new")
    shutil.rmtree(workspace / "folder")
    (workspace / "folder").write_text("theirs")
    refused(one)
    assert (workspace / "folder").read_text() == "theirs"


def test_a_file_removed_by_undo_and_made_anew_by_others_is_not_overwritten_by_redo(
    one: Handrail, workspace: Path
) -> None:
    one.write("a.txt", "ours")
    one.undo()
    (workspace / "a.txt").write_text("theirs")
    error = one.redo().error
    assert error is not None
    assert error.code == "CONFLICT"
    assert (workspace / "a.txt").read_text() == "theirs"


def test_a_later_change_is_named_and_can_be_taken_back_too(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text(OLD)
    one.edit("a.txt", "line 5\n", "ours 5\n")
    one.write("b.txt", "b")
    one.edit("a.txt", "line 30\n", "ours 30\n")
    error = refused(one, 1)
    assert "a.txt was changed again by 3." in error.message
    assert error.details["choices"] == ["later", "lines"]
    assert one.undo(1, resolve="later").summary == "Undid 3 and 1: a.txt"
    assert (workspace / "a.txt").read_text() == OLD
    assert (workspace / "b.txt").read_text() == "b"


def test_an_outside_change_between_two_of_ours_is_not_lost(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "1")
    (workspace / "a.txt").write_text("theirs")
    one.read("a.txt")
    one.write("a.txt", "2")
    refused(one, 1, resolve="later")
    assert (workspace / "a.txt").read_text() == "2"
    assert one.undo().ok
    assert (workspace / "a.txt").read_text() == "theirs"
    refused(one)


def test_only_the_lines_that_are_as_they_were_left_are_taken_back(one: Handrail, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text(OLD)
    one.write("a.txt", OLD.replace("line 5\n", "ours 5\n").replace("line 30\n", "ours 30\n"))
    path.write_text(path.read_text().replace("ours 30\n", "theirs 30\n").replace("line 15\n", "theirs 15\n"))
    result = one.undo(resolve="lines")
    assert result.ok
    assert result.warnings == ("1 of its places changed since and stay.",)
    assert path.read_text() == OLD.replace("line 15\n", "theirs 15\n").replace("line 30\n", "theirs 30\n")
    assert one.redo().ok
    assert "ours 5\n" in path.read_text()


def test_an_undo_of_lines_is_named_when_it_stands_in_the_way(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text(OLD)
    one.edit("a.txt", "line 5\n", "ours 5\n")
    one.edit("a.txt", "line 30\n", "ours 30\n")
    assert one.undo(1, resolve="lines").ok
    error = refused(one, 2)
    assert "a.txt was changed again by 3, an undo." in error.message
    assert error.details["choices"] == ["lines"]
    assert one.undo(2, resolve="lines").ok
    assert (workspace / "a.txt").read_text() == OLD


def test_where_nothing_is_as_it_was_left_nothing_is_taken_back(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    one.write("a.txt", "new")
    (workspace / "a.txt").write_text("theirs")
    refused(one, resolve="lines")
    assert [(record.number, record.in_effect) for record in one.changes()] == [(1, True)]


def test_a_preview_of_lines_keeps_nothing(one: Handrail, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text(OLD)
    one.edit("a.txt", "line 5\n", "ours 5\n")
    with (workspace / "a.txt").open("a") as file:
        file.write("theirs\n")
    before = sorted((tmp_path / "state").rglob(".changes/blobs/*"))
    assert "+line 5\n" in one.preview_undo(resolve="lines")
    assert sorted((tmp_path / "state").rglob(".changes/blobs/*")) == before


def test_lines_keep_the_encoding_and_the_line_endings(one: Handrail, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_bytes(("\ufeff" + OLD.replace("\n", "\r\n")).encode())
    one.write("a.txt", OLD.replace("line 5\n", "ours 5\n"))
    path.write_bytes(path.read_bytes().replace(b"line 30", b"theirs"))
    assert one.undo(resolve="lines").ok
    assert path.read_bytes() == ("\ufeff" + OLD.replace("line 30", "theirs").replace("\n", "\r\n")).encode()


def test_others_may_change_the_mode_and_it_stays(one: Handrail, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("old")
    one.write("a.txt", "new")
    path.chmod(0o755)
    assert one.undo().ok
    assert path.read_text() == "old"
    assert path.stat().st_mode & 0o777 == 0o755


def test_of_several_files_none_is_taken_back_when_one_cannot_be(one: Handrail, workspace: Path) -> None:
    for name in "abc":
        one.write(f"{name}.txt", "new")
    (workspace / "b.txt").write_text("theirs")
    refused(one, session="s")
    assert [(workspace / f"{name}.txt").read_text() for name in "abc"] == ["new", "theirs", "new"]


def test_a_kept_content_that_is_damaged_is_not_brought_back(one: Handrail, workspace: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (workspace / name).write_text(f"old {name}")
        one.write(name, "new")
    [path] = (tmp_path / "state").rglob(".changes/blobs/small.db")
    contents = sqlite3.connect(path, isolation_level=None)
    key = hashlib.sha256(b"old b").digest()
    contents.execute("UPDATE pack SET data = 'damaged' WHERE id = (SELECT pack FROM content WHERE hash = ?)", (key,))
    result = one.undo(session="s")
    assert result.error is not None
    assert result.error.code == "IO_ERROR"
    assert "b cannot be restored" in result.error.message
    assert [(workspace / name).read_text() for name in ("a", "b")] == ["new", "new"]
    assert [record.in_effect for record in one.changes()] == [True, True]
    contents.execute("DELETE FROM content WHERE hash = ?", (key,))
    contents.close()
    result = one.undo(session="s")
    assert result.error is not None
    assert result.error.code == "NOT_FOUND"
    assert "no longer stored. Nothing was undone." in result.error.message


def test_a_file_that_is_locked_by_another_session_is_waited_for(rail: Rail, workspace: Path) -> None:
    one, other = rail(session="one"), rail(session="other")
    one.write("a.txt", "x")
    lock = other._session.locks.of(f"file:{workspace}/a.txt")
    assert lock.take(1)
    one._session.lock_seconds = 0.05
    assert "is being changed by another session" in refused(one).message
    lock.release()
    assert one.undo().ok
