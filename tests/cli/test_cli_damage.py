"""A damaged journal: it is called damaged, and stops nothing but its own session."""

import hashlib
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

SOUND, DAMAGED = "sound", "damaged"
WRITE = '{"path": "a.txt", "content": "x"}'


@pytest.fixture
def journals(here, state: Path) -> dict[str, Path]:
    """Two sessions of one workspace, each with a request that waits."""
    for session in (SOUND, DAMAGED):
        here("call", "ls", '{"path": "."}', "--session", session)
        assert here("call", "write", WRITE, "--session", session, "--mode", "ask").code == 3
    return {path.parent.name: path for path in state.glob("workspaces/*/*/journal.db")}


@pytest.fixture
def damaged(journals: dict[str, Path]) -> Path:
    journals[DAMAGED].write_bytes(b"garbage" * 1000)
    for ending in ("-wal", "-shm"):
        journals[DAMAGED].with_name(f"journal.db{ending}").unlink(missing_ok=True)
    return journals[DAMAGED]


def digests(state: Path) -> dict[str, str]:
    """What every file holds; SQLite's own files beside a database are no part of it."""
    files = (path for path in state.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {str(path.relative_to(state)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


READERS = [("log",), ("log", "--sessions"), ("approvals",), ("policy", "replay"), ("processes",)]


@pytest.mark.parametrize("words", READERS, ids=" ".join)
@pytest.mark.usefixtures("damaged")
def test_a_damaged_journal_does_not_stop_what_is_about_other_sessions(here, words: tuple[str, ...]) -> None:
    done = here(*words)
    assert done.code == 0
    assert "Traceback" not in done.err
    assert "defect" not in done.err


@pytest.mark.usefixtures("damaged")
def test_listings_name_the_damaged_session_beside_the_others(here) -> None:
    listed = here("log", "--sessions")
    rows = [row.split() for row in listed.out.splitlines()[1:]]
    assert {row[0]: row[1] for row in rows} == {SOUND: "4", DAMAGED: "unreadable"}
    assert "file is not a database. It is damaged" in listed.err
    found = here("log", "--sessions", "--json").json["sessions"]
    assert [one["id"] for one in found] == [SOUND, DAMAGED]
    assert "problem" not in found[0]
    assert "damaged" in found[1]["problem"]

    waiting = here("approvals")
    assert waiting.out.count("waiting") == 1
    assert "warning: the journal" in waiting.err
    assert len(here("approvals", "--json").json["waiting"]) == 1


@pytest.mark.parametrize("words", [("log", "--session"), ("log", "export"), ("replay",)], ids=" ".join)
@pytest.mark.usefixtures("damaged")
def test_what_is_about_the_damaged_session_says_so_and_names_the_next_step(here, words: tuple[str, ...]) -> None:
    done = here(*words, DAMAGED)
    assert (done.code, done.out) == (4, "")
    assert "It is damaged; your files and other sessions are safe.\nnext: handrail doctor" in done.err
    assert "defect" not in done.err


def test_a_call_in_the_damaged_session_is_refused_and_changes_nothing(here, damaged: Path, workspace: Path) -> None:
    before = damaged.read_bytes()
    done = here("call", "write", WRITE, "--session", DAMAGED, "--mode", "auto")
    assert done.code == 4
    assert "is damaged" in done.err
    assert (list(workspace.iterdir()), damaged.read_bytes()) == ([], before)
    assert here("call", "write", WRITE, "--mode", "auto").code == 0


@pytest.mark.usefixtures("damaged")
def test_verifying_says_that_a_journal_could_not_be_read_and_not_that_the_chain_is_broken(here) -> None:
    done = here("audit", "verify")
    assert (done.code, done.out) == (4, "2 records intact\n")
    assert f"The calls of session {DAMAGED} could not be checked: the journal" in done.err
    found = here("audit", "verify", "--json")
    assert (found.code, found.json["intact"], found.json["problems"]) == (4, True, [])
    assert len(found.json["unread"]) == 1


def test_a_record_of_an_unreadable_session_is_not_held_against_another_of_its_name(
    here, state: Path, tmp_path: Path
) -> None:
    """The session cli of another workspace is sound, and knows nothing of these calls."""
    other = tmp_path / "other"
    other.mkdir()
    here("call", "ls", '{"path": "."}')
    here("call", "ls", '{"path": "."}', cwd=other)
    journal = next(state.glob("workspaces/*/cli/journal.db"))
    journal.write_bytes(b"garbage")
    done = here("audit", "verify")
    assert (done.code, done.out) == (4, "2 records intact\n")


def test_an_answer_that_cannot_be_read_hides_no_other_request(here, journals: dict[str, Path]) -> None:
    with closing(sqlite3.connect(journals[DAMAGED])) as database, database:
        database.execute("UPDATE call SET state = 'ready' WHERE state = 'parked'")
        database.execute("UPDATE request SET answer = ?", (b'{"kind": "\xff\xfe"}',))
    done = here("approvals")
    assert done.code == 0
    assert [row.split()[1] for row in done.out.splitlines()[1:]] == ["waiting"]
    unknown = here("approvals", "allow", "zzzzzz")
    assert (unknown.code, "there is no request" in unknown.err) == (1, True)


def test_looking_changes_no_journal_of_an_older_handrail(here, state: Path, workspace: Path) -> None:
    here("call", "ls", '{"path": "."}')
    journal = next(state.glob("workspaces/*/cli/journal.db"))
    sql = Path(__file__).parents[1].joinpath("store", "journal_v1.sql").read_text()
    journal.unlink()
    with closing(sqlite3.connect(journal)) as database:
        database.executescript(sql)
    before = digests(state)
    for words in (("log",), ("log", "--sessions"), ("log", "export", "cli", "--out", str(workspace)), ("approvals",)):
        assert here(*words).code == 0
    here("audit", "verify")
    assert digests(state) == before
    with closing(sqlite3.connect(journal)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)


LEAVES_ALL_IN_THE_LOG = """
import os, signal, sys
from handrail import Handrail
rail = Handrail(sys.argv[1], session="cli")
rail.call("ls", {"path": "."})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
def test_a_state_folder_that_nobody_may_write_can_be_looked_at(
    apart, state: Path, workspace: Path, environment: dict[str, str], killed: bool
) -> None:
    apart("call", "ls", '{"path": "."}')
    if killed:
        subprocess.run([sys.executable, "-c", LEAVES_ALL_IN_THE_LOG, workspace], env=environment, check=False)
    events = len(apart("log", "--events", "--json").json["events"])
    for shared in state.glob("workspaces/*/*/journal.db-shm"):
        shared.unlink()  # so it is in a copy of a state folder

    def looked_at(*words: str) -> subprocess.CompletedProcess[str]:
        # Root may write everywhere but on a read-only mount.
        script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
        inside = ["unshare", "-rm", "sh", "-c", script, state, sys.executable, "-m", "handrail", *words]
        return subprocess.run(inside, cwd=workspace, env=environment, capture_output=True, text=True, check=False)

    if looked_at("--version").returncode != 0:
        pytest.skip("no mount namespaces here")
    log = looked_at("log", "--events", "--json")
    assert (log.returncode, log.stderr) == (0, "")
    assert len(json.loads(log.stdout)["events"]) == events
    assert looked_at("log", "--sessions").returncode == 0
    assert looked_at("approvals").returncode == 0
    assert looked_at("audit").returncode == 0
    verified = looked_at("audit", "verify")
    assert (verified.returncode, verified.stdout) == (0, f"{1 + killed} record{'s' * killed} intact\n")


@pytest.fixture
def damaged_log(here, state: Path) -> Path:
    """The change log of a workspace in which something was changed."""
    assert here("call", "write", WRITE, "--mode", "auto").code == 0
    [log] = state.glob("workspaces/*/.changes/changes.db")
    log.write_bytes(b"garbage" * 1000)
    return log


@pytest.mark.usefixtures("damaged_log")
def test_a_damaged_change_log_says_what_is_safe_and_what_to_do(here, workspace: Path, tmp_path: Path) -> None:
    done = here("call", "write", '{"path": "b.txt", "content": "y"}', "--mode", "auto")
    assert done.code == 1
    told = "Handrail's change log is damaged. Nothing was changed."
    assert f"error: {told} (IO_ERROR)\n" in done.err
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]
    for words in (("undo",), ("log", "--changes"), ("diff",)):
        refused = here(*words)
        assert refused.code in {1, 4}
        assert "change log" in refused.err
        assert "is damaged" in refused.err
        assert refused.err.endswith("next: handrail doctor\n")
        assert "defect" not in refused.err
    assert here("call", "read", '{"path": "a.txt"}').out == "x"
    other = tmp_path / "other"
    other.mkdir()
    assert here("call", "write", WRITE, "--mode", "auto", cwd=other).code == 0


def test_doctor_finds_a_damaged_change_log_and_its_command_mends_it(here, apart, damaged_log: Path) -> None:
    done = here("doctor", "--json")
    assert done.code == 1
    [row] = [row for row in done.json["rows"] if row["text"].startswith("change log")]
    assert (row["group"], row["status"]) == ("state", "error")
    assert "file is not a database" in row["text"]
    subprocess.run(["sh", "-c", row["fix"]], env={"HANDRAIL_STATE_DIR": str(damaged_log.parents[3])}, check=True)
    assert here("call", "write", '{"path": "b.txt", "content": "y"}', "--mode", "auto").code == 0
    assert here("undo").code == 0
    assert not [row for row in here("doctor", "--json").json["rows"] if row["text"].startswith("change log")]


@pytest.mark.usefixtures("damaged")
def test_doctor_finds_a_damaged_journal(here) -> None:
    done = here("doctor", "--json")
    assert done.code == 1
    [row] = [row for row in done.json["rows"] if row["text"].startswith("journal")]
    assert row["text"].startswith(f"journal of session {DAMAGED}: the journal $HANDRAIL_STATE_DIR/workspaces/")


def test_doctor_finds_an_event_that_cannot_be_read(here, journals: dict[str, Path]) -> None:
    with closing(sqlite3.connect(journals[SOUND])) as database, database:
        database.execute("UPDATE event SET data = ? WHERE seq = 1", (b'{"kind": "\xff"}',))
    texts = [row["text"] for row in here("doctor", "--json").json["rows"]]
    assert f"journal of session {SOUND}: event 1 cannot be read" in texts
