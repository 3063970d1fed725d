"""handrail approvals: what nobody waits for any more leaves the inbox, and nothing of it runs."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.runtime.approvals import expire_requests
from handrail.settings import Settings
from handrail.store.state_dir import StateFolder

WRITE = '{"path": "new.txt", "content": "one\\n"}'
TOUCH = '{"command": "touch made"}'
Library = Callable[..., Handrail]


@pytest.fixture
def run(here):
    """In this process: these are many commands."""
    return here


@pytest.fixture
def library(state: Path, workspace: Path) -> Iterator[Library]:
    """Opens Handrails over the workspace, with the state folder of the commands."""
    opened: list[Handrail] = []

    def make(session: str = "library", **options) -> Handrail:
        chosen = {"mode": "ask", "settings": Settings(), "on_permission": lambda _: None, **options}
        opened.append(Handrail(workspace, session=session, state_dir=state, **chosen))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def waits(run, *words: str) -> list[dict]:
    return run("approvals", "--json", *words).json["waiting"]


def make_old(state: Path, session: str = "cli") -> None:
    """Moves all that a session recorded ten years into the past."""
    year = datetime.now(UTC).year
    moved = f'CAST(replace(CAST(data AS TEXT), \'"time":"{year}\', \'"time":"{year - 10}\') AS BLOB)'
    [journal] = state.glob(f"workspaces/*/{session}/journal.db")
    with closing(sqlite3.connect(journal)) as database, database:
        for table in ("event", "request"):
            database.execute(f"UPDATE {table} SET data = {moved}")


def previews(state: Path) -> list[str]:
    return [path.name for path in state.glob("workspaces/*/.changes/trials/*")]


def denials(state: Path) -> list[dict]:
    """The answers that the journal of the session `cli` has of denied requests."""
    [journal] = state.glob("workspaces/*/cli/journal.db")
    with closing(sqlite3.connect(journal)) as database:
        rows = database.execute("SELECT data FROM event WHERE kind = 'tool_call.permission-denied'").fetchall()
    return [json.loads(data)["answer"] for (data,) in rows]


def test_an_old_request_that_nobody_waits_for_expires(run, state: Path, workspace: Path) -> None:
    run("call", "exec", TOUCH)
    assert len(previews(state)) == 1
    make_old(state)
    done = run("approvals", "--workspace", ".")
    assert done.err.splitlines()[0] == "1 request expired, unanswered for 7d"
    assert (waits(run), previews(state)) == ([], [])
    assert denials(state) == [{"kind": "deny", "reason": "it expired", "by": "expiry"}]
    assert not (workspace / "made").exists()


def test_a_young_request_does_not_expire(run, state: Path) -> None:
    run("call", "write", WRITE)
    assert expire_requests(StateFolder(str(state)), None, 3_600) == 0
    assert len(waits(run)) == 1


def test_a_request_of_an_open_session_never_expires(run, state: Path, library: Library) -> None:
    rail = library()
    rail.call("write", json.loads(WRITE))
    assert expire_requests(StateFolder(str(state)), None, 0) == 0
    [request] = rail.waiting()
    assert rail.answer(request, "once").results[0].ok
    rail.call("exec", json.loads(TOUCH))
    rail.close()
    assert expire_requests(StateFolder(str(state)), None, 0) == 1


def test_an_expired_call_tells_its_session_so_and_runs_nothing_of_its_batch(
    run, state: Path, workspace: Path, library: Library
) -> None:
    rail = library()
    rail.call("write", json.loads(WRITE), tool_call_id="a")
    rail.close()
    assert expire_requests(StateFolder(str(state)), None, 0) == 1
    assert waits(run) == []
    result = library().call("write", json.loads(WRITE), tool_call_id="a")
    assert result.error is not None
    assert (result.error.code, result.error.message) == (
        "PERMISSION_DENIED",
        "The permission request was not answered: it expired. Nothing ran. Make the call again if you still need it.",
    )
    assert not (workspace / "new.txt").exists()
    assert run("audit", "verify").code == 0


def test_the_time_after_which_requests_expire_is_a_setting(run, state: Path, config) -> None:
    config('[ask]\nexpire = "365 d"\n')
    run("call", "write", WRITE)
    assert len(waits(run)) == 1
    make_old(state)
    assert waits(run) == []


def test_clear_denies_all_that_waits_and_says_how_many(run, state: Path, workspace: Path) -> None:
    run("call", "write", WRITE)
    run("call", "exec", TOUCH, "--session", "other")
    done = run("approvals", "clear", "--workspace", ".")
    assert (done.code, done.out, done.err) == (
        0, "2 requests denied. Nothing ran; your files are untouched.\n", "",
    )  # fmt: skip
    assert (waits(run), previews(state)) == ([], [])
    assert denials(state) == [{"kind": "deny", "reason": "cleared from the inbox"}]
    assert run("approvals", "clear", "--workspace", ".").out.startswith("0 requests denied.")
    assert not (workspace / "new.txt").exists()


def test_clear_can_leave_the_young_ones(run, state: Path) -> None:
    run("call", "write", WRITE, "--session", "old")
    make_old(state, "old")
    run("call", "exec", TOUCH)
    done = run("approvals", "clear", "--older-than", "2h", "--json")
    assert len(done.json["cleared"]) == 1
    [left] = waits(run)
    assert left["request"]["command"] == "touch made"
    done = run("approvals", "clear", "--older-than", "2h", "--workspace", ".")
    assert done.err == "1 request still waiting: handrail approvals\n"


def test_clear_is_for_this_workspace_unless_all_are_meant(run, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    run("call", "write", WRITE)
    assert run("approvals", "clear", "--workspace", str(other)).out.startswith("0 requests denied.")
    assert run("approvals", "clear", "--all").out.startswith("1 request denied.")


def test_who_waits_for_a_cleared_request_is_told(run, library: Library) -> None:
    rail = library()
    rail.call("write", json.loads(WRITE), tool_call_id="a")
    run("approvals", "clear")
    assert rail.waiting() == ()
    error = rail.call("write", json.loads(WRITE), tool_call_id="a").error
    assert error is not None
    assert error.message.startswith('The user denied the request: "cleared from the inbox".')


def test_the_same_call_again_replaces_its_older_twin(run, state: Path) -> None:
    run("call", "exec", TOUCH)
    [first] = waits(run)
    run("call", "exec", TOUCH)
    [second] = waits(run)
    assert first["id"] != second["id"]
    assert len(previews(state)) == 1
    assert denials(state) == [{"kind": "deny", "reason": "the same call came again", "by": "expiry"}]
    assert run("approvals", "allow", second["id"]).code == 0
    assert run("audit", "verify").code == 0


def test_another_call_or_another_session_is_no_twin(run) -> None:
    run("call", "exec", TOUCH)
    run("call", "exec", '{"command": "touch other"}')
    run("call", "exec", TOUCH, "--session", "other")
    assert len(waits(run)) == 3


def test_a_call_of_a_process_that_lives_is_not_replaced(run, library: Library) -> None:
    library("shared").call("exec", json.loads(TOUCH))
    run("call", "exec", TOUCH, "--session", "shared")
    assert len(waits(run)) == 2
