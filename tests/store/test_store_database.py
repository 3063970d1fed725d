"""Journals of every age open; a journal of the future does not."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from handrail import Done, Handrail, StoreError
from handrail.protocol.events import Event
from handrail.store.database import JOURNAL, Database
from handrail.store.state_dir import StateFolder

Make = Callable[..., Handrail]
FIRST = Path(__file__).with_name("journal_v1.sql")
"""A journal as the first version wrote it: a call that failed, one that waits, one that wrote, one that read."""


@pytest.fixture
def old(rail: Make, tmp_path: Path, workspace: Path) -> Handrail:
    folder = StateFolder(str(tmp_path / "state")).session(str(workspace.resolve()), "old")
    with closing(sqlite3.connect(Path(folder) / "journal.db")) as database:
        database.executescript(FIRST.read_text())
    return rail(session="old", mode="ask")


def test_every_event_of_a_journal_of_the_first_version_can_be_read(old: Handrail) -> None:
    events = list(old.events())
    assert [event.seq for event in events] == list(range(1, 12))
    assert all(isinstance(event, Event) for event in events)


def test_a_session_of_the_first_version_goes_on(old: Handrail, workspace: Path) -> None:
    first = old.call("read", {"path": "b.txt"}, tool_call_id="call_read")
    assert (first.ok, first.content) == (True, "three\n")
    [request] = old.waiting()
    outcome = old.answer(request.id, "once")
    assert isinstance(outcome, Done)
    assert outcome.results[0].ok
    assert (workspace / "a.txt").read_text() == "one\ntwo\n"
    (workspace / "b.txt").write_text("changed since it was read\n")
    again = old.write("b.txt", "four\n")
    assert again.error is not None
    assert again.error.code == "STALE_FILE"


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    Database(path, "crash").close()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone()[0] == len(JOURNAL.steps)
        database.execute(f"PRAGMA user_version = {len(JOURNAL.steps) + 1}")
    with pytest.raises(StoreError, match="newer handrail"):
        Database(path, "crash")


def test_a_new_journal_is_for_its_owner_only(tmp_path: Path) -> None:
    with closing(Database(str(tmp_path / "journal.db"), "crash")) as database:
        database.execute("INSERT INTO output VALUES ('call', 'blob')")
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600}


@pytest.mark.parametrize(("durability", "expected"), [("crash", 1), ("power", 2)])
def test_durability_is_what_the_settings_say(tmp_path: Path, durability: str, expected: int) -> None:
    with closing(Database(str(tmp_path / "journal.db"), durability)) as database:  # type: ignore[arg-type]
        assert database.row("PRAGMA synchronous") == (expected,)
        assert database.row("PRAGMA journal_mode") == ("wal",)


OPENER = """
import sys
from handrail.store.database import Database
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
Database(sys.argv[1], "crash").close()
"""


def test_processes_that_open_a_new_journal_together_all_succeed(tmp_path: Path, count: Callable[[int], int]) -> None:
    for number in range(count(60)):
        command = [sys.executable, "-c", OPENER, str(tmp_path / f"journal-{number}.db")]
        openers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(4)
        ]
        for opener in openers:
            assert opener.stdout is not None
            opener.stdout.readline()
        ends = []
        for opener in openers:
            assert opener.stdin is not None
            opener.stdin.write(b"go\n")
            opener.stdin.flush()
        for opener in openers:
            ends.append((opener.communicate()[1].decode(), opener.returncode))
        assert ends == [("", 0)] * 4
