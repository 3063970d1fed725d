"""What is kept for undo: once, packed, for a time; and what a crash left is settled by whoever comes next."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.errors import ToolError
from handrail.settings import Settings

Rail = Callable[..., Handrail]


def kept(tmp_path: Path) -> int:
    """How many small contents are stored."""
    return database_of(tmp_path, "small.db").execute("SELECT count(*) FROM content").fetchone()[0]


def database_of(tmp_path: Path, name: str) -> sqlite3.Connection:
    [path] = (tmp_path / "state").rglob(name)
    return sqlite3.connect(path, isolation_level=None)


def test_equal_contents_are_kept_once_and_packed(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    text = "all the same\n" * 50_000
    one = rail()
    for name in ("a", "b", "c"):
        (workspace / name).write_text(text)
        one.write(name, f"new {name}")
    one.close()
    [blob] = (tmp_path / "state").rglob(".changes/blobs/*")
    assert blob.stat().st_size < len(text) / 10
    assert blob.stat().st_mode & 0o077 == 0
    again = rail()
    assert again.undo(session=one.session_id).ok
    assert (workspace / "b").read_text() == text


def make_old(tmp_path: Path, days: int) -> None:
    """Lets time pass, as far as the change log and its contents can tell."""
    with database_of(tmp_path, "changes.db") as log:
        log.execute("UPDATE change_set SET time = strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now', ?)", (f"-{days} days",))
    with database_of(tmp_path, "small.db") as contents:
        contents.execute("UPDATE content SET used = used - ?", (days * 86_400,))
    for path in (tmp_path / "state").rglob(".changes/**/*"):
        if path.is_file():
            status = path.stat()
            os.utime(path, (status.st_atime - days * 86_400, status.st_mtime - days * 86_400))


def test_changes_are_kept_for_a_time_and_listed_for_ever(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("old")
    with rail(settings=Settings.from_values({"undo.days": 10})) as one:
        one.write("a.txt", "new")
    make_old(tmp_path, 9)
    with rail(settings=Settings.from_values({"undo.days": 10})) as one:
        one.changes()
    assert kept(tmp_path) == 1
    make_old(tmp_path, 11)
    for _ in range(2):  # one look may be by a clock that is wrong
        assert kept(tmp_path) == 1
        with rail(settings=Settings.from_values({"undo.days": 10})) as one:
            one.changes()
        [swept] = (tmp_path / "state").rglob(".changes/swept")
        os.utime(swept, (0, swept.stat().st_mtime - 2 * 86_400))
    assert kept(tmp_path) == 0
    one = rail()
    [record] = one.changes()
    assert (record.number, record.undoable, record.in_effect) == (1, False, True)
    error = one.undo().error
    assert error is not None
    assert "is too old" in error.message
    with pytest.raises(ToolError, match="too old"):
        one.diff(1)
    assert (workspace / "a.txt").read_text() == "new"


def test_what_a_change_that_is_kept_needs_stays(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("shared")
    (workspace / "b.txt").write_text("shared")
    with rail() as one:
        one.write("a.txt", "1")
    make_old(tmp_path, 40)
    with rail() as one:
        one.write("b.txt", "2")
    assert kept(tmp_path) == 1
    one = rail()
    assert one.undo(2).ok
    assert (workspace / "b.txt").read_text() == "shared"


def test_when_the_contents_cannot_be_kept_nothing_is_written(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("old")
    one = rail()
    one.write("b.txt", "makes the folders")
    [folder] = (tmp_path / "state").rglob(".changes")
    (folder / "blobs").write_text("a file in the way")
    error = one.write("a.txt", "new").error
    assert error is not None
    assert error.code == "IO_ERROR"
    assert error.message.startswith("a.txt could not be stored for undo")
    assert error.message.endswith("Nothing was changed.")
    assert (workspace / "a.txt").read_text() == "old"


# Makes a change of two files, and is killed by itself between them.
HALF = """
import os, signal, sys
from pathlib import Path
from handrail import Handrail
from handrail.changes import apply
from handrail.settings import Settings

workspace, state, files = sys.argv[1:]
rail = Handrail(workspace, mode="auto", session="killed", state_dir=state, settings=Settings())
for name in ("a", "b", "c"):
    rail.write(name, "new " + name)
os.utime(workspace)

def die(real, *, after, calls=[0]):
    def replace(*args, **options):
        calls[0] += 1
        if calls[0] > after:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)
    return replace

apply.put_instead = die(apply.put_instead, after=int(files))
rail.undo(session="killed")
"""


@pytest.mark.parametrize("files", [0, 1, 2])
def test_another_session_settles_what_was_cut_off_between_two_files(
    rail: Rail, workspace: Path, tmp_path: Path, files: int
) -> None:
    for name in ("a", "b", "c"):
        (workspace / name).write_text(f"old {name}")
    done = subprocess.run([sys.executable, "-c", HALF, workspace, tmp_path / "state", str(files)], check=False)
    assert done.returncode == -9
    assert sum((workspace / name).read_text() == f"old {name}" for name in ("a", "b", "c")) == files
    other = rail(session="other")
    assert [record.number for record in other.changes()] == [3, 2, 1]
    assert [(workspace / name).read_text() for name in ("a", "b", "c")] == ["new a", "new b", "new c"]
    assert other.undo(session="killed").ok
    assert [(workspace / name).read_text() for name in ("a", "b", "c")] == ["old a", "old b", "old c"]
    killed = rail(session="killed")
    [error] = [event.result.error for event in killed.events() if event.__class__.__name__ == "ToolCallError"]
    assert error.message == "The runtime ended while this call ran. Nothing was changed."


def test_what_others_changed_meanwhile_stays_when_a_crash_is_settled(
    rail: Rail, workspace: Path, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        (workspace / name).write_text(f"old {name}")
    subprocess.run([sys.executable, "-c", HALF, workspace, tmp_path / "state", "2"], check=False)
    (workspace / "a").write_text("theirs")
    rail(session="other").changes()
    assert [(workspace / name).read_text() for name in ("a", "b", "c")] == ["theirs", "new b", "new c"]


def test_a_file_that_was_half_written_in_place_is_mended(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    old, new = "old\n" * 5_000, "newer\n" * 2_000
    (workspace / "a").write_text(old)
    os.link(workspace / "a", workspace / "b")
    with rail(mode="full", session="s") as one:
        one.write("a", new)
    with database_of(tmp_path, "changes.db") as log:  # as if it had been killed on the way
        log.execute("UPDATE change_set SET state = 'begun', runner = 'gone'")
    (workspace / "a").write_text(new[:3_000] + old[3_000:])
    again = rail(session="other")
    assert again.changes() == []
    assert (workspace / "b").read_text() == old
    assert (workspace / "a").samefile(workspace / "b")


def test_a_file_that_others_wrote_in_place_is_not_mended(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    old, new = "old\n" * 5_000, "newer\n" * 2_000
    (workspace / "a").write_text(old)
    os.link(workspace / "a", workspace / "b")
    with rail(mode="full", session="s") as one:
        one.write("a", new)
    with database_of(tmp_path, "changes.db") as log:
        log.execute("UPDATE change_set SET state = 'begun', runner = 'gone'")
    theirs = new[:3_000] + "THEIRS" + old[3_006:]
    (workspace / "a").write_text(theirs)
    rail(session="other").changes()
    assert (workspace / "b").read_text() == theirs
