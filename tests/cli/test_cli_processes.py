"""handrail processes: what a person sees and does about commands that go on."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.protocol.events import Notice, Process
from handrail.settings import Settings

Run = Callable[..., Any]
SECONDS = 60.0


@pytest.fixture
def rail(workspace: Path, state: Path) -> Iterator[Handrail]:
    """The session cli, as `handrail call` has it."""
    opened = Handrail(workspace, mode="full", session="cli", state_dir=state, settings=Settings())
    yield opened
    opened.end_session()


def started(rail: Handrail, command: str) -> str:
    data = rail.exec(command, background=True).data
    assert data is not None
    assert data.session_id
    return data.session_id


def until(ask: Callable[[], Any], holds: Callable[[Any], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while not holds(done := ask()):
        assert time.monotonic() < end, done
    return done


def test_nothing_runs_where_nothing_was_started(here: Run, workspace: Path) -> None:
    assert here("processes").code == 0
    assert "nothing is running" in here("processes").err
    assert here("processes", "--json").json == {"schema": "handrail.processes/1", "processes": []}


def test_a_table_has_what_runs_and_what_did(here: Run, rail: Handrail) -> None:
    server, other = started(rail, "echo ready in 412 ms; cat"), started(rail, "echo 1 failed; exit 1")
    until(rail.processes, lambda found: found[0].last_line and found[1].state == "ended")
    head, first, second = here("processes").out.splitlines()
    assert head.split() == ["id", "state", "age", "port", "command", "last", "line"]
    assert first.split()[:2] == [server[:5], "running"]
    assert first.endswith("echo ready in 412 ms; cat  ready in 412 ms")
    assert second.split()[:3] == [other[:5], "exit", "1"]
    assert "undo does not cover changes by background processes; to stop one:" in here("processes").err
    assert [record["id"] for record in here("processes", "--json").json["processes"]] == [server, other]


def test_every_workspace_and_one_session(here: Run, rail: Handrail, tmp_path: Path, workspace: Path) -> None:
    process = started(rail, "cat")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "--all" in here("processes", cwd=elsewhere).err
    head, row = here("processes", "--all", cwd=elsewhere).out.splitlines()
    assert head.split() == ["id", "state", "age", "port", "workspace", "command", "last", "line"]
    assert (row.split()[0], row.split()[4]) == (process[:5], str(workspace))
    assert process[:5] in here("processes", "--session", "cli").out
    refused = here("processes", "--session", "nobody")
    assert (refused.code, refused.err.startswith("error: there is no session")) == (1, True)


def test_a_log_is_printed_followed_and_given_raw(here: Run, run: Run, rail: Handrail) -> None:
    process = started(rail, "printf '\\033[31mred\\033[0m\\n'; read line; echo $line")
    until(lambda: here("processes", "log", process[:7], "-q"), lambda done: done.out == "red\n")
    assert here("processes", "log", process[:7], "--raw").raw == b"\x1b[31mred\x1b[0m\n"
    assert here("processes", "write", process[:7], "go on", "-q").code == 0
    followed = run("processes", "log", process[:7], "--follow")
    assert followed.out == "red\ngo on\n"
    assert "exit code 0" in followed.err


def test_what_a_person_writes_reaches_the_program_and_no_record(
    here: Run, run: Run, rail: Handrail, state: Path
) -> None:
    cat = started(rail, "cat")
    assert here("processes", "write", cat, "open sesame").code == 0
    assert run("processes", "write", cat, "-", "--eof", stdin=b"from stdin").code == 0
    until(lambda: here("processes", "log", cat), lambda done: done.out == "open sesame\nfrom stdin")
    notices = [event.text for event in rail.events() if isinstance(event, Notice)]
    assert notices == [
        f"A person wrote 12 bytes to {cat}.",
        f"A person wrote 10 bytes and closed the input to {cat}.",
    ]
    assert "sesame" not in json.dumps([repr(event) for event in rail.events()])
    assert "sesame" not in (state / "audit.jsonl").read_text()
    assert here("processes", "write", cat).code == 2


def test_one_is_stopped_and_removed_and_that_is_on_the_record(here: Run, rail: Handrail) -> None:
    cat = started(rail, "cat")
    assert here("processes", "stop", cat[:6]).code == 0
    assert rail.processes()[0].reason == "stopped"
    written = here("processes", "write", cat, "x")
    assert (written.code, written.err.splitlines()[-1] == "next: handrail processes") == (1, True)
    assert here("processes", "remove", cat, "--json").json["process"]["id"] == cat
    assert rail.processes() == ()
    told = [event.state for event in rail.events() if isinstance(event, Process)]
    assert told == ["started", "ended", "removed"]
    notices = [event.text for event in rail.events() if isinstance(event, Notice)]
    assert notices == [f"A person stopped {cat}.", f"A person removed {cat}."]
    log = here("log").out
    assert f"{cat} started: cat\n" in log
    assert f"{cat} ended (stopped): cat\n" in log


def test_all_of_a_session_and_all_there_are_are_stopped(here: Run, rail: Handrail, tmp_path: Path) -> None:
    started(rail, "cat"), started(rail, "cat")
    assert here("processes", "stop", "--session", "cli").code == 0
    assert {record.state for record in rail.processes()} == {"ended"}
    started(rail, "cat")
    assert here("processes", "stop", "--all", cwd=tmp_path).code == 0
    assert {record.state for record in rail.processes()} == {"ended"}


@pytest.mark.parametrize("which", [("--all",), ("--session", "cli")], ids=["all", "session"])
def test_stopping_prints_one_json_document_however_many_ran(here: Run, rail: Handrail, which: tuple[str, ...]) -> None:
    ids = [started(rail, "cat") for _ in range(2)]
    stopped = here("processes", "stop", *which, "--json", "-q")
    assert (stopped.code, stopped.err, stopped.json["schema"]) == (0, "", "handrail.processes/1")
    assert {(one["id"], one["reason"]) for one in stopped.json["processes"]} == {(one, "stopped") for one in ids}
    nothing = here("processes", "stop", *which, "--json")
    assert (nothing.code, nothing.json) == (0, {"schema": "handrail.processes/1", "processes": [], "errors": []})
    ended = here("processes", "stop", ids[0], "--json")
    assert (ended.code, ended.json["schema"]) == (0, "handrail.processes/1")
    assert (ended.json["process"]["id"], ended.json["process"]["state"]) == (ids[0], "ended")
    assert [event.text for event in rail.events() if isinstance(event, Notice)] == [
        f"A person stopped {one['id']}." for one in stopped.json["processes"]
    ]


def test_one_that_had_ended_is_told_as_a_note(here: Run, rail: Handrail) -> None:
    cat = started(rail, "cat")
    assert here("processes", "stop", cat, "-q").out == f"stopped {cat}: cat\n"
    again = here("processes", "stop", cat)
    assert (again.code, again.out, again.err.splitlines()[-1]) == (0, "", f"{cat} had ended before: stopped")
    assert here("processes", "stop", cat, "-q").err == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("log",), 2),
        (("log", "p-nothere"), 1),
        (("stop",), 2),
        (("stop", "p-a", "--all"), 2),
        (("remove", "p-nothere"), 1),
        (("write", "p-nothere", "x"), 1),
        (("kill", "p-a"), 2),
    ],
)
def test_wrong_usage_and_ids_that_are_not_there(here: Run, words: tuple[str, ...], code: int) -> None:
    done = here("processes", *words)
    assert done.code == code
    assert [line.split()[0] for line in done.err.splitlines()[-2:]] == ["error:", "next:"]


def test_an_id_that_means_several_is_told_with_them(here: Run, rail: Handrail) -> None:
    one, other = started(rail, "cat"), started(rail, "cat")
    done = here("processes", "log", "p-")
    assert (done.code, done.err.endswith(". Nothing was done.\nnext: handrail processes\n")) == (2, True)
    assert one in done.err
    assert other in done.err


def test_the_beginning_that_is_listed_is_enough_to_type(here: Run, rail: Handrail) -> None:
    ids = [started(rail, "cat") for _ in range(2)]
    listed = [line.split()[0] for line in here("processes").out.splitlines()[1:]]
    assert all(len(short) < 10 for short in listed)
    for process, short in zip(ids, listed, strict=True):
        assert f"stopped {process}: cat\n" == here("processes", "stop", short).out


def test_policy_is_explained_for_calls_about_them(here: Run, rail: Handrail) -> None:
    python, cat = started(rail, "python3 -q -i"), started(rail, "cat")

    def explained(args: dict[str, Any], *more: str) -> Any:
        return here("policy", "explain", "--tool", "process", "--args", json.dumps(args), "--json", *more).json

    write = {"action": "write", "data": "x"}
    assert explained({**write, "sessionId": python}, "--mode", "ask")["decision"] == "confirm"
    assert explained({**write, "sessionId": python}, "--mode", "plan")["rule"] == "process.write"
    assert explained({**write, "sessionId": cat}, "--mode", "plan")["decision"] == "allow"
    assert explained({"action": "list"}, "--mode", "plan")["rule"] == "process.look"
    assert here("policy", "explain", "--tool", "process", "--args", '{"action": "poll", "sessionId": "p-no"}').code == 2


def test_calls_about_them_are_judged_again_in_a_replay(here: Run, rail: Handrail) -> None:
    python = started(rail, "python3 -q -i")
    assert rail.process("write", python, data="1\n").ok
    replay = here("policy", "replay", "--mode", "ask", "--json").json
    assert [(one["tool"], one["now"], one["rule"]) for one in replay["differ"]] == [
        ("exec", "confirm", "exec.interpreter"),
        ("process", "confirm", "process.write"),
    ]


def test_a_command_started_from_the_shell_is_there_for_the_next_one(run: Run, config: Callable[[str], Path]) -> None:
    config('mode = "full"\n')
    begun = run("call", "exec", '{"command": "cat", "background": true}', "--json")
    assert begun.code == 0, begun.err
    process = begun.json["data"]["sessionId"]
    assert run("call", "process", json.dumps({"action": "write", "sessionId": process, "data": "hi\n"})).code == 0
    until(
        lambda: run("call", "process", json.dumps({"action": "log", "sessionId": process})), lambda d: d.out == "hi\n"
    )
    assert run("processes", "remove", process).code == 0
