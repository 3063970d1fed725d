"""What a killed process left undone is settled when the session is opened: the moments that matter, one by one."""

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail, tool
from handrail.protocol.events import Event, Notice, ToolCallEnd, ToolCallError, get_event_kind
from handrail.protocol.records import AuditRecord
from handrail.state import StoredState
from handrail.store.audit import decode_record
from handrail.store.runner import Runner, is_dead, list_dead_runners

Make = Callable[..., Handrail]

PREFACE = """
import os, sys, time
from handrail import Context, Handrail, tool
from handrail.settings import Settings
workspace, state = sys.argv[1:]

def say(word):
    sys.stdout.write(word + "\\n"); sys.stdout.flush()

@tool
def effect(context: Context, name: str) -> str:
    "Has an effect and never returns."
    open(os.path.join(workspace, name), "w").write("effect")
    say("inside")
    time.sleep(60)
    return "done"

@tool(read_only=True, auto_execute=True)
def look(context: Context) -> str:
    "Never returns."
    say("inside")
    time.sleep(60)
    return "done"

def rail(mode="full"):
    return Handrail(workspace, mode=mode, session="s", state_dir=state, settings=Settings(), tools=[effect, look])
"""


class Victim:
    """A process that is killed when it has said that it is where it should be."""

    def __init__(self, workspace: Path, state: Path, program: str) -> None:
        command = [sys.executable, "-c", PREFACE + program, workspace, state]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_for(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().decode().strip() == word

    def kill(self) -> None:
        assert self.process.poll() is None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def records(state: Path) -> list[AuditRecord]:
    lines = (state / "audit.jsonl").read_bytes().splitlines(keepends=True)
    return [found[0] for line in lines if (found := decode_record(line))]


def results(rail: Handrail) -> dict[str, str | None]:
    ends = [event.result for event in rail.events() if isinstance(event, ToolCallEnd | ToolCallError)]
    assert len({end.tool_call_id for end in ends}) == len(ends)
    return {end.tool_call_id: end.error.code if end.error else None for end in ends}


def check(rail: Handrail, state: Path, expected: dict[str, str | None]) -> None:
    assert results(rail) == expected
    assert {record.tool_call_id: record.error_code for record in records(state)} == expected
    verification = StoredState(str(state)).verify()
    assert (verification.problems, verification.records) == ((), len(expected))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_call_that_was_running_is_interrupted_and_not_repeated(rail: Make, workspace: Path, state: Path) -> None:
    victim = Victim(workspace, state, 'rail().call("effect", {"name": "a"}, tool_call_id="x")')
    victim.wait_for("inside")
    assert records(state) == []
    victim.kill()
    with rail(session="s") as one:
        check(one, state, {"x": "INTERRUPTED"})
        again = one.call("effect", {"name": "b"}, tool_call_id="x")
        assert again.error is not None
        assert again.error.code == "INTERRUPTED"
        assert "Check before you repeat it" in again.summary
        assert [event.code for event in one.events() if isinstance(event, Notice)] == ["INTERRUPTED"]
        [record] = records(state)
        assert (record.name, record.decision, record.rule) == ("effect", "allow", "tool.custom")
        assert record.args == {"name": "<1 characters>"}
    assert not (workspace / "b").exists()
    with rail(session="s") as one:
        check(one, state, {"x": "INTERRUPTED"})
    assert not list(state.rglob("*.runner*"))


def test_a_custom_tool_without_effects_is_interrupted_too(rail: Make, workspace: Path, state: Path) -> None:
    victim = Victim(workspace, state, 'rail().call("look", {}, tool_call_id="x")')
    victim.wait_for("inside")
    victim.kill()
    with rail(session="s") as one:
        check(one, state, {"x": "INTERRUPTED"})


def test_a_result_that_was_stored_gets_the_line_it_missed(rail: Make, workspace: Path, state: Path) -> None:
    """Somebody else holds the audit, so the process is killed between journal and audit for certain."""
    (workspace / "a.txt").write_text("text\n")
    victim = Victim(
        workspace,
        state,
        """
one = rail()
one.call("read", {"path": "a.txt"}, tool_call_id="first")
say("ready")
sys.stdin.readline()
one.subscribe(lambda event: None)
one.call("write", {"path": "a.txt", "content": "new\\n"}, tool_call_id="second")
""",
    )
    victim.wait_for("ready")
    with (state / "audit.jsonl").open("rb") as audit:
        fcntl.flock(audit, fcntl.LOCK_EX)
        assert victim.process.stdin is not None
        victim.process.stdin.write(b"go\n")
        victim.process.stdin.flush()
        [journal] = state.glob("workspaces/*/s/journal.db")
        with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as database:
            query = "SELECT count(*) FROM event WHERE kind = 'tool_call.end'"
            while database.execute(query).fetchone()[0] < 2:
                pass
        victim.kill()
        assert [record.tool_call_id for record in records(state)] == ["first"]
        assert not StoredState(str(state)).verify().intact
    with rail(session="s") as one:
        check(one, state, {"first": None, "second": None})
        restored = records(state)[1]
        assert (restored.files_changed, restored.summary) == (("a.txt",), "Wrote a.txt +1 −1")
    assert (workspace / "a.txt").read_text() == "new\n"


def test_a_result_that_was_delivered_before_its_record_gets_the_record_at_the_next_opening(
    rail: Make, workspace: Path, state: Path
) -> None:
    (workspace / "a.txt").write_text("text\n")
    victim = Victim(
        workspace,
        state,
        """
one = rail()

def deliver():
    assert one.call("read", {"path": "a.txt"}, tool_call_id="late").ok
    say("delivered")
    time.sleep(60)

for number in range(100):
    one.run_before_audit(lambda: one.call("read", {"path": "a.txt"}, tool_call_id=f"r{number}"))
one.run_before_audit(deliver)
""",
    )
    victim.wait_for("delivered")
    victim.kill()
    assert [record.tool_call_id for record in records(state)] == [f"r{number}" for number in range(100)]
    with rail(session="s") as one:
        check(one, state, {**{f"r{number}": None for number in range(100)}, "late": None})


def test_only_the_thread_that_delivers_leaves_its_record_for_later(rail: Make, workspace: Path, state: Path) -> None:
    (workspace / "a.txt").write_text("text\n")
    with rail(session="s") as one:

        def read(name: str) -> None:
            one.call("read", {"path": "a.txt"}, tool_call_id=name)

        def deliver() -> None:
            read("mine")
            assert records(state) == []
            other = threading.Thread(target=read, args=["other"])
            other.start()
            other.join()
            assert [record.tool_call_id for record in records(state)] == ["mine", "other"]
            read("last")

        one.run_before_audit(deliver)
        check(one, state, {"mine": None, "other": None, "last": None})
        read("next")
        assert [record.tool_call_id for record in records(state)][-1] == "next"


def test_many_calls_before_the_crash_are_not_written_twice(rail: Make, workspace: Path, state: Path) -> None:
    """More than are noted at once, so that the note of how far the audit is counts."""
    (workspace / "a.txt").write_text("text\n")
    victim = Victim(
        workspace,
        state,
        """
one = rail()
for number in range(200):
    one.call("read", {"path": "a.txt"}, tool_call_id=f"r{number}")
one.call("effect", {"name": "a"}, tool_call_id="x")
""",
    )
    victim.wait_for("inside")
    victim.kill()
    with rail(session="s") as one:
        check(one, state, {**{f"r{number}": None for number in range(200)}, "x": "INTERRUPTED"})


def test_a_parked_batch_is_not_settled_but_waits(rail: Make, workspace: Path, state: Path) -> None:
    victim = Victim(
        workspace,
        state,
        """
one = rail("ask")
one.call("write", {"path": "a.txt", "content": "x"}, tool_call_id="w")
say("ready")
time.sleep(60)
""",
    )
    victim.wait_for("ready")
    victim.kill()
    with rail(session="s", mode="ask") as one:
        assert results(one) == {}
        [request] = one.waiting()
        outcome = one.answer(request.id, "once")
        assert isinstance(outcome, Done)
        check(one, state, {"w": None})


def test_of_a_batch_killed_on_its_way_each_call_is_told_how_far_it_came(
    rail: Make, workspace: Path, state: Path
) -> None:
    victim = Victim(
        workspace,
        state,
        """
from datetime import UTC, datetime
from handrail import ToolCall
def call(id, tool, **args):
    return ToolCall(tool_call_id=id, name=tool, args=args, trace_id=id, timestamp=datetime.now(UTC))
one = rail("ask")
first, last = ({"path": f"{letter}.txt", "content": "x"} for letter in "ac")
parked = one.batch([call("a", "write", **first), call("b", "effect", name="b"), call("c", "write", **last)])
for request in parked.requests:
    one.answer(request.id, "once")
""",
    )
    victim.wait_for("inside")
    victim.kill()
    with rail(session="s") as one:
        check(one, state, {"a": None, "b": "INTERRUPTED"})
        summaries = {
            event.tool_call_id: event.result.summary for event in one.events() if isinstance(event, ToolCallError)
        }
        assert "effects are unknown" in summaries["b"]
        assert one.waiting() == ()
        assert (workspace / "a.txt").exists()
        assert not (workspace / "c.txt").exists()
        outcome = one.resume()
        assert outcome is not None
        assert [result.tool_call_id for result in outcome.results] == ["a", "b", "c"]
        check(one, state, {"a": None, "b": "INTERRUPTED", "c": None})
        assert one.resume() is None
    assert (workspace / "c.txt").exists()


def test_a_living_process_is_left_alone(rail: Make, workspace: Path, state: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Waits."""
        inside.set()
        assert go_on.wait(60)
        return "done"

    one = rail(mode="full", session="s", tools=[slow])
    thread = threading.Thread(target=one.call, args=("slow", {}), kwargs={"tool_call_id": "x"})
    thread.start()
    assert inside.wait(60)
    with rail(session="s") as other:
        assert results(other) == {}
        go_on.set()
        thread.join()
        check(other, state, {"x": None})


def test_several_who_open_at_once_settle_it_once(rail: Make, workspace: Path, state: Path) -> None:
    for number in range(5):
        victim = Victim(workspace, state, f'rail().call("effect", {{"name": "a"}}, tool_call_id="x{number}")')
        victim.wait_for("inside")
        victim.kill()
        opened: list[Handrail] = []
        ready = threading.Barrier(4)

        def open_it(opened: list[Handrail] = opened, ready: Any = ready) -> None:
            ready.wait()
            opened.append(rail(session="s"))

        threads = [threading.Thread(target=open_it) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check_all = {f"x{earlier}": "INTERRUPTED" for earlier in range(number + 1)}
        assert [results(one) for one in opened] == [check_all] * 4
        for one in opened:
            one.close()
        assert len(records(state)) == number + 1


def test_who_was_killed_while_settling_is_settled_too(rail: Make, workspace: Path, state: Path) -> None:
    victim = Victim(workspace, state, 'rail().call("effect", {"name": "a"}, tool_call_id="x")')
    victim.wait_for("inside")
    victim.kill()
    with (state / "audit.jsonl").open("rb") as audit:
        fcntl.flock(audit, fcntl.LOCK_EX)
        second = Victim(workspace, state, "rail()")
        [journal] = state.glob("workspaces/*/s/journal.db")
        with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as database:
            query = "SELECT count(*) FROM event WHERE kind = 'tool_call.error'"
            while database.execute(query).fetchone()[0] < 1:
                pass
        second.kill()
    with rail(session="s") as one:
        check(one, state, {"x": "INTERRUPTED"})


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET data = x'7b' WHERE kind = 'tool_call.start'",
        "UPDATE event SET decided = x'7b' WHERE kind = 'tool_call.start'",
        "UPDATE event SET decided = NULL, data = 'nothing'",
    ],
)
def test_a_call_whose_record_is_damaged_does_not_keep_the_session_from_opening(
    rail: Make, workspace: Path, state: Path, damage: str
) -> None:
    victim = Victim(workspace, state, 'rail().call("effect", {"name": "a"}, tool_call_id="x")')
    victim.wait_for("inside")
    victim.kill()
    [journal] = state.glob("workspaces/*/s/journal.db")
    with closing(sqlite3.connect(journal)) as database:
        database.execute(damage)
        database.commit()
    with rail(session="s") as one:
        check(one, state, {"x": "INTERRUPTED"})
        assert one.ls().ok


def test_a_parked_call_whose_record_is_damaged_has_a_result(rail: Make, state: Path) -> None:
    with rail(session="s", mode="ask") as one:
        one.call("write", {"path": "a.txt", "content": "x"}, tool_call_id="x")
    [journal] = state.glob("workspaces/*/s/journal.db")
    with closing(sqlite3.connect(journal)) as database:
        database.execute("UPDATE event SET data = x'7b' WHERE kind = 'tool_call.start'")
        database.commit()
    with rail(session="s", mode="ask") as one:
        outcome = one.answer(one.waiting()[0].id, "once")
        assert isinstance(outcome, Done)
        check(one, state, {"x": "INTERNAL"})


def test_listeners_hear_what_is_settled_when_a_session_is_opened(rail: Make, workspace: Path, state: Path) -> None:
    from handrail.settings import Settings

    victim = Victim(workspace, state, 'rail().call("effect", {"name": "a"}, tool_call_id="x")')
    victim.wait_for("inside")
    victim.kill()
    with rail(session="s", settings=Settings.from_values({"events.jsonl": "logs"})) as one:
        settled = [get_event_kind(event) for event in one.events() if isinstance(event, Event)][2:]
    [copy] = (workspace / "logs" / "s").iterdir()
    assert copy.read_bytes().count(b"\n") == len(settled) == 2


@pytest.mark.parametrize("changed_since", [False, True])
def test_what_a_session_wrote_itself_just_before_a_crash_is_not_stale(
    rail: Make, workspace: Path, state: Path, changed_since: bool
) -> None:
    """Somebody else holds the journal, so the process is killed between the change and its result for certain."""
    (workspace / "a.txt").write_text("old\n")
    victim = Victim(
        workspace,
        state,
        """
one = rail()
one.call("read", {"path": "a.txt"})
def waits(event):
    say("started")
    sys.stdin.readline()
from handrail.protocol.events import ToolCallRunning
one.subscribe(waits, kinds=[ToolCallRunning])
one.call("write", {"path": "a.txt", "content": "new\\n"}, tool_call_id="x")
""",
    )
    victim.wait_for("started")
    [journal] = state.glob("workspaces/*/s/journal.db")
    with closing(sqlite3.connect(journal, isolation_level=None)) as held:
        held.execute("BEGIN IMMEDIATE")
        assert victim.process.stdin is not None
        victim.process.stdin.write(b"\n")
        victim.process.stdin.flush()
        log = journal.parent.parent / ".changes" / "changes.db"
        until = time.monotonic() + 60
        while not is_done(log) and time.monotonic() < until:
            time.sleep(0.01)
        victim.kill()
    if changed_since:
        (workspace / "a.txt").write_text("somebody else's\n")
    with rail(session="s") as one:
        assert results(one)["x"] == "INTERRUPTED"
        again = one.edit("a.txt", "new", "newer") if not changed_since else one.write("a.txt", "newer\n")
        assert (again.error.code if again.error else None) == ("STALE_FILE" if changed_since else None)


def is_done(log: Path) -> bool:
    """Whether the change that was begun is written down as done."""
    if not log.exists():
        return False
    with closing(sqlite3.connect(log)) as database:
        tables = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'change_set'").fetchone()
        return tables == (1,) and database.execute("SELECT state FROM change_set").fetchall() == [("done",)]


def test_several_who_look_at_a_dead_runner_at_once_all_find_it_dead(tmp_path: Path) -> None:
    runner = Runner(str(tmp_path))
    assert not is_dead(str(tmp_path), runner.id)
    runner.release()
    with (tmp_path / f"{runner.id}.runner").open("rb") as another:
        fcntl.flock(another, fcntl.LOCK_SH)  # another process looks at this moment
        assert is_dead(str(tmp_path), runner.id)
        assert list_dead_runners(str(tmp_path)) == [runner.id]
