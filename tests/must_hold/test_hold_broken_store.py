"""A state folder that cannot be used: opening it raises a StoreError that says why. A call of an open session has a
result all the same, which says what it did. Nothing is lost."""

import os
import re
import resource
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail, StoreError, tool
from handrail.protocol.errors import HandrailError
from handrail.protocol.events import ToolCallError, ToolCallStart
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.state import StoredState

Make = Callable[..., Handrail]

can_mount = (
    os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
)
mounts = pytest.mark.skipif(not can_mount, reason="mounting a small or read-only file system takes root")


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder with all that is in it, bound over itself read-only: not even root writes there."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> Path:
    """Takes every byte that is left."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as out:
        for size in (1 << 16, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                continue
    return filler


def fails(result: ToolResult[Any]) -> bool:
    """Whether a call failed; only since the disk is full may it."""
    if result.error is not None:
        assert (result.error.code, result.error.retryable) == ("NO_SPACE", True)
        assert result.error.message.startswith("The disk is full, so handrail's ")
        assert result.error.message.endswith("Only the user can repair this: handrail doctor")
    return result.error is not None


def journal_of(state: Path) -> Path:
    [found] = state.glob("workspaces/*/*/journal.db")
    return found


def refuses(make: Make, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        make(session="s")


@mounts
def test_a_read_only_state_folder_is_refused_before_anything_runs(tmp_path: Path, rail: Make, workspace: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with read_only(state):
        refuses(rail, r"state folder .*state.* cannot be made: Read-only file system. Set HANDRAIL_STATE_DIR")


@mounts
def test_a_session_folder_that_became_read_only_is_refused(tmp_path: Path, rail: Make, workspace: Path) -> None:
    with rail(session="s") as one:
        one.write("a.txt", "old\n")
    with read_only(tmp_path / "state"):
        refuses(rail, "cannot be opened|cannot be written|cannot be made")
    with rail(session="s") as one:
        assert one.read("a.txt").content == "old\n"
    assert StoredState(str(tmp_path / "state")).verify().problems == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_state_folder_of_somebody_else_is_refused(tmp_path: Path, rail: Make) -> None:
    (tmp_path / "state").mkdir(mode=0o500)
    refuses(rail, "cannot be made: Permission denied")


def test_a_state_path_that_is_a_file_is_refused(tmp_path: Path, rail: Make) -> None:
    (tmp_path / "state").write_text("")
    refuses(rail, "cannot be made: File exists")
    (tmp_path / "state").unlink()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Not a directory"):
        rail(state_dir=tmp_path / "file" / "state")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda path: path.write_bytes(b"garbage" * 1000),
            "journal .*journal.db cannot be opened: file is not a database",
        ),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 4000), "cannot be opened"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be opened: .*Is a directory"),
    ],
)
def test_a_journal_that_is_none_is_refused(tmp_path: Path, rail: Make, damage: Any, words: str) -> None:
    with rail(session="s") as one:
        one.write("a.txt", "old\n")
    journal = journal_of(tmp_path / "state")
    damage(journal)
    refuses(rail, words)
    leftovers = {entry.name for entry in journal.parent.iterdir()} - {"files", "journal.db"}
    assert {name for name in leftovers if not name.startswith("journal.db-")} == set()


def test_a_journal_of_a_newer_handrail_is_refused_and_left_alone(tmp_path: Path, rail: Make) -> None:
    with rail(session="s") as one:
        one.write("a.txt", "old\n")
    journal = journal_of(tmp_path / "state")
    with closing(sqlite3.connect(journal)) as database:
        database.execute("PRAGMA user_version = 99")
    refuses(rail, r"written by a newer handrail \(step 99\)")
    with closing(sqlite3.connect(journal)) as database:
        database.execute("PRAGMA user_version = 1")
        assert database.execute("SELECT count(*) FROM event").fetchone()[0] > 0


def test_a_damaged_page_of_the_journal_is_a_store_error_and_touches_no_file(
    tmp_path: Path, rail: Make, workspace: Path
) -> None:
    with rail(session="s") as one:
        for number in range(50):
            one.write("a.txt", f"{number}\n")
    journal = journal_of(tmp_path / "state")
    data = bytearray(journal.read_bytes())
    data[2048:] = os.urandom(len(data) - 2048)  # the first page says that it is a database, the others are noise
    journal.write_bytes(data)
    with pytest.raises(StoreError, match="journal"), rail(session="s") as one:
        one.write("a.txt", "new\n")
    assert (workspace / "a.txt").read_text() == "49\n"


def test_an_audit_that_cannot_be_opened_is_refused(tmp_path: Path, rail: Make) -> None:
    (tmp_path / "state" / "audit.jsonl").mkdir(parents=True)
    refuses(rail, "audit .*audit.jsonl cannot be opened: Is a directory")
    (tmp_path / "state" / "audit.jsonl").rmdir()
    assert not list((tmp_path / "state").glob("workspaces/*/*/*.runner*"))
    with rail(session="s") as one:
        assert one.ls().ok


def test_locks_that_cannot_be_made_let_nothing_run(tmp_path: Path, rail: Make, workspace: Path) -> None:
    one = rail(session="s")
    (tmp_path / "state" / "locks").rmdir()
    (tmp_path / "state" / "locks").write_text("")
    error = one.write("a.txt", "new\n").error
    assert error is not None
    assert (error.code, error.message) == (
        "IO_ERROR",
        "Handrail's records cannot be used. Nothing was run. Only the user can repair this: handrail doctor",
    )
    assert not (workspace / "a.txt").exists()
    assert one.ls().ok


@mounts
def test_a_write_whose_start_cannot_be_journaled_touches_no_file(tmp_path: Path, rail: Make, workspace: Path) -> None:
    state = tmp_path / "state"
    with mounted(state, "size=1m"):
        with rail(session="s") as one:
            one.write("a.txt", "old\n")
            filler = fill(state)
            for _ in range(3):
                refused = one.write("a.txt", "new\n" * 20_000)
                assert fails(refused)
                assert "Nothing was run." in refused.content
            assert any(fails(one.read("a.txt")) for _ in range(200))  # what is free inside may do for some
            assert (workspace / "a.txt").read_text() == "old\n"
            assert [entry.name for entry in workspace.iterdir()] == ["a.txt"]

            filler.unlink()
            assert one.write("a.txt", "new\n").ok  # the same object goes on
        assert (workspace / "a.txt").read_text() == "new\n"
        with rail(session="s") as one:
            starts = [event for event in one.events() if isinstance(event, ToolCallStart)]
        verification = StoredState(str(state)).verify()
        assert (verification.problems, verification.records) == ((), len(starts))


@mounts
def test_opening_on_a_full_disk_says_at_once_which_disk_and_how_to_look_at_it(tmp_path: Path, rail: Make) -> None:
    state = tmp_path / "state"
    with mounted(state, "size=1m"):
        with rail(session="s") as one:
            one.write("a.txt", "old\n")
        fill(state)
        for session in ("s", "new"):
            begun = time.monotonic()
            with pytest.raises(StoreError) as raised, rail(session=session):
                pass
            assert time.monotonic() - begun < 10, "it waited as it does for another writer"
            assert "disk I/O error" not in str(raised.value)
            assert re.search(rf"{state}\S* cannot be \w+: No space left on device", str(raised.value))
            assert re.search(rf"The disk is full. Next: df -h {state}", str(raised.value))


@pytest.mark.parametrize("free", range(14))
def test_a_session_that_gets_no_more_descriptors_says_so(rail: Make, free: int) -> None:
    rail(session="s").close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + free, hard))
    try:
        with rail(session="s") as one:
            error = one.ls().error
        told = error.message if error is not None else ""
    except (HandrailError, OSError) as raised:
        told = str(raised)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not told or re.search("too many files open|Too many open files", told)


@mounts
@pytest.mark.parametrize("room_at_close", [False, True])
def test_a_call_whose_end_cannot_be_journaled_is_interrupted_at_the_next_open(
    tmp_path: Path, workspace: Path, room_at_close: bool
) -> None:
    state = tmp_path / "state"

    @tool
    def fills_the_disk(context: Any, text: str) -> str:
        """Has an effect, and leaves no room to say so."""
        (workspace / "effect.txt").write_text(text)
        fill(state)
        return text * 1000

    def open_it() -> Handrail:
        return Handrail(
            workspace, mode="full", session="s", state_dir=state, settings=Settings(), tools=[fills_the_disk]
        )

    with mounted(state, "size=1m"):
        one = open_it()
        result = one.call("fills_the_disk", {"text": "x" * 200})
        assert fails(result)
        assert "The call ran, but its result was not recorded: check before you repeat it." in result.content
        if room_at_close:
            (state / "filler").unlink()
        one.close()
        (state / "filler").unlink(missing_ok=True)
        assert (workspace / "effect.txt").read_text() == "x" * 200

        with open_it() as one:
            [end] = [event for event in one.events() if isinstance(event, ToolCallError)]
            assert end.result.error is not None
            assert end.result.error.code == "INTERRUPTED"
            assert one.ls().ok
        verification = StoredState(str(state)).verify()
        assert (verification.problems, verification.records) == ((), 2)


@mounts
@pytest.mark.parametrize("in_the_same_process", [True, False])
def test_an_audit_line_that_found_no_room_is_added_later(
    tmp_path: Path, rail: Make, workspace: Path, in_the_same_process: bool
) -> None:
    """The journal is on another disk here than the audit, so that only the audit is full."""
    state = tmp_path / "state"
    state.mkdir()
    small = tmp_path / "small"
    with mounted(small, "size=64k"):
        (small / "audit.jsonl").touch()
        (state / "audit.jsonl").symlink_to(small / "audit.jsonl")
        one = rail(session="s")
        one.write("a.txt", "1\n")
        filler = fill(small)
        assert all(one.read("a.txt").ok for _ in range(40))  # the journal has them, and the audit is owed some
        before = StoredState(str(state)).verify().problems
        assert before
        assert all(problem.startswith("The end was cut: ") or "more calls" in problem for problem in before)
        if in_the_same_process:
            filler.unlink()
            assert one.read("a.txt").ok
            one.close()
        else:
            one.close()
            filler.unlink()
            rail(session="s").close()
        with rail(session="s") as one:
            calls = [event.tool_call_id for event in one.events() if isinstance(event, ToolCallStart)]
        verification = StoredState(str(state)).verify()
        assert (verification.problems, verification.records) == ((), len(calls))
