"""log and log export: reading back what happened."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from handrail.protocol.schema import build_wire_schemas
from handrail.sandbox.bubblewrap import find_bubblewrap

READ = '{"path": "a.txt"}'


@pytest.fixture
def played(here, workspace: Path) -> None:
    """Four events of two calls, one of which failed."""
    (workspace / "a.txt").write_text("hello\n")
    here("call", "read", READ)
    here("call", "read", '{"path": "\\u001b[2J.txt"}')


def break_event(state: Path, seq: int) -> None:
    [journal] = state.glob("workspaces/*/cli/journal.db")
    with sqlite3.connect(journal) as connection:
        connection.execute("UPDATE event SET data = ? WHERE seq = ?", (b'{"kind":', seq))
    connection.close()


@pytest.mark.usefixtures("played")
def test_events_are_a_table_of_number_time_kind_and_what(here) -> None:
    head, *rows = here("log", "--events").out.splitlines()
    assert head.split() == ["seq", "time", "kind", "what"]
    assert [(row.split()[0], *row.split()[3:5]) for row in rows] == [
        ("1", "tool_call.start", "read"),
        ("2", "tool_call.end", "read:"),
        ("3", "tool_call.start", "read"),
        ("4", "tool_call.error", "read:"),
    ]
    assert rows[1].endswith("read: Read lines 1–1 of 1 of a.txt")
    assert rows[3].endswith("read: NOT_FOUND")


@pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_what_a_command_tried_to_reach_is_a_row(here, config) -> None:
    config('mode = "full"\nnetwork.allow = ["example.org:443"]\n')
    done = here("call", "exec", '{"command": "curl -sS http://example.com/"}')
    assert "[blocked: example.com:80 is not listed]" in done.out
    [row] = [row for row in here("log", "--events").out.splitlines() if " network " in row]
    assert row.endswith("example.com:80 blocked: example.com is not listed")


@pytest.mark.usefixtures("played")
def test_log_json_has_the_events_as_they_are(here) -> None:
    found = here("log", "--events", "--json").json
    assert (found["schema"], found["session"], found["lastSeq"], found["broken"]) == ("handrail.log/1", "cli", 4, [])
    schemas = build_wire_schemas()
    for event in found["events"]:
        jsonschema.validate(event, schemas[f"event.{event['kind']}"])


WINDOWS = [
    (("--after", "1"), [2, 3, 4], ""),
    (("--after", "1", "--limit", "2"), [2, 3], "1 more: handrail log --events --after 3\n"),
    (("--limit", "2"), [3, 4], "the last 2 of 4; from the beginning: handrail log --events --after 0\n"),
    (("--after", "4"), [], "no event after 4; the last is 4\n"),
]


@pytest.mark.usefixtures("played")
def test_log_json_of_a_large_journal_takes_no_more_memory_than_of_a_small_one(
    state: Path, workspace: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    def peak() -> tuple[int, int]:
        """The bytes that the command printed, and those that it had at most."""
        with (tmp_path / "printed").open("wb") as out:
            command = [
                sys.executable,
                "-m",
                "handrail",
                "log",
                "--events",
                "--after",
                "0",
                "--limit",
                "100000",
                "--json",
            ]
            child = subprocess.Popen(command, cwd=workspace, env=environment, stdout=out)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        return (tmp_path / "printed").stat().st_size, used.ru_maxrss * 1024

    small, least = peak()
    [journal] = state.glob("workspaces/*/cli/journal.db")
    with sqlite3.connect(journal) as connection:
        [data] = connection.execute("SELECT data FROM event WHERE kind = 'tool_call.end'").fetchone()
        large = data.replace(b'"summary":"', b'"summary":"' + b"x" * 10_000)
        numbers = "WITH RECURSIVE number(n) AS (SELECT 5 UNION ALL SELECT n + 1 FROM number WHERE n < 5000)"
        row = "SELECT n, 'tool_call.end', 'call', 'runner', ?, NULL FROM number"
        connection.execute(f"{numbers} INSERT INTO event {row}", (large,))
    connection.close()
    printed, most = peak()
    assert printed - small > 45_000_000
    assert most - least < 25_000_000
    assert len(json.loads((tmp_path / "printed").read_bytes())["events"]) == 5000


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize(("words", "numbers", "said"), WINDOWS)
def test_log_shows_the_end_or_what_comes_after_a_number(here, words, numbers: list[int], said: str) -> None:
    assert [event["seq"] for event in here("log", "--events", "--json", *words).json["events"]] == numbers
    done = here("log", "--events", *words, "--workspace", ".")
    assert [int(row.split()[0]) for row in done.out.splitlines()[1:]] == numbers
    assert done.err == said


@pytest.mark.parametrize("words", [("--limit", "0"), ("--limit", "-1"), ("--after", "x"), ("--after", "9" * 30)])
def test_log_refuses_numbers_that_are_none(here, words) -> None:
    done = here("log", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: argument {words[0]}: ")


@pytest.mark.usefixtures("played")
def test_log_tells_which_event_is_broken_and_goes_on(here, state: Path) -> None:
    break_event(state, 2)
    done = here("log", "--events", "-q")
    assert done.code == 0
    assert len(done.out.splitlines()) == 5
    assert done.err.startswith("warning: event 2 cannot be read: ")
    found = here("log", "--events", "--json").json
    assert [one["seq"] for one in found["broken"]] == [2]
    assert [one["seq"] for one in found["events"]] == [1, 3, 4]


@pytest.mark.usefixtures("played")
def test_a_session_that_is_not_there_is_named_with_those_that_are_and_not_made(here, state: Path) -> None:
    before = sorted(state.rglob("*"))
    done = here("log", "--session", "other", "-q")
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(
        "has no session 'other'. Nothing was done. Its sessions: cli.\nnext: handrail log --sessions\n"
    )
    assert here("log", "export", "other", "-q").code == 1
    assert sorted(state.rglob("*")) == before


def test_a_workspace_without_sessions_says_so_and_gets_none(here, state: Path) -> None:
    assert here("log", "-q").err.endswith("has no session yet.\nnext: handrail run PROMPT\n")
    done = here("log", "--sessions")
    assert (done.code, done.out, done.err.splitlines()[-1]) == (0, "", "this workspace has no session yet")
    assert not state.exists()


@pytest.mark.usefixtures("played")
def test_sessions_are_listed_the_latest_first_and_only_of_this_workspace(here, tmp_path: Path) -> None:
    here("call", "read", READ, "--session", "later")
    other = tmp_path / "other"
    other.mkdir()
    here("call", "ls", '{"path": "."}', "--session", "elsewhere", cwd=other)
    rows = [row.split()[:2] for row in here("log", "--sessions").out.splitlines()]
    assert rows == [["session", "events"], ["later", "2"], ["cli", "4"]]
    assert [one["id"] for one in here("log", "--sessions", "--json").json["sessions"]] == ["later", "cli"]


@pytest.mark.usefixtures("played")
def test_export_writes_every_event_to_the_file_of_its_day(here, workspace: Path) -> None:
    done = here("log", "export", "cli")
    assert done.code == 0
    [file] = (workspace / ".tasklogs" / "cli").iterdir()
    events = here("log", "--events", "--json").json["events"]
    assert [json.loads(line) for line in file.read_text().splitlines()] == events
    assert file.name == f"handrail-{events[0]['time'][:10].replace('-', '')}.jsonl"
    assert done.out == f".tasklogs/cli/{file.name}  4 events\n"


@pytest.mark.usefixtures("played")
def test_export_again_gives_the_same_file_and_another_folder_on_request(here, tmp_path: Path) -> None:
    out = tmp_path / "out"
    here("log", "export", "cli", "--out", str(out))
    [file] = out.rglob("*.jsonl")
    first = file.read_bytes()
    found = here("log", "export", "cli", "--out", str(out), "--json").json
    assert file.read_bytes() == first
    assert found["files"] == [{"file": str(file), "events": 4}]


@pytest.mark.usefixtures("played")
def test_export_leaves_out_what_is_broken_and_says_so(here, state: Path, workspace: Path) -> None:
    break_event(state, 3)
    done = here("log", "export", "cli", "-q")
    assert done.code == 0
    assert done.err.startswith("warning: event 3 cannot be read and was left out: ")
    [file] = workspace.rglob("*.jsonl")
    assert [json.loads(line)["seq"] for line in file.read_text().splitlines()] == [1, 2, 4]


def test_an_export_is_as_private_as_the_journal(here, tmp_path: Path) -> None:
    out = tmp_path / "out"
    here("call", "ls", '{"path": "."}')
    assert here("log", "export", "cli", "--out", str(out)).code == 0
    files = [path for path in out.rglob("*") if path.is_file()]
    assert files
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


@pytest.mark.usefixtures("played")
def test_export_in_a_dialect_is_what_that_system_would_be_told(here, workspace: Path) -> None:
    assert here("log", "export", "cli", "--out", "logs", "--dialect", "deepchat").code == 0
    [file] = (workspace / "logs" / "cli").iterdir()
    assert file.name.startswith("deepchat-")
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["data"]["tool_call"] for one in told] == ["start", "end", "start", "error"]


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("linked", [".tasklogs", ".tasklogs/cli", ".tasklogs/cli/handrail-{day}.jsonl"])
def test_export_follows_no_link_that_a_project_brings(here, workspace: Path, tmp_path: Path, linked: str) -> None:
    from datetime import UTC, datetime

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    precious = elsewhere / "precious"
    precious.write_text("mine\n")
    link = workspace / linked.format(day=f"{datetime.now(UTC):%Y%m%d}")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(precious if linked.endswith("jsonl") else elsewhere)
    refused = here("log", "export", "cli")
    assert refused.code == 2
    assert "--out" in refused.err
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]
    assert precious.read_text() == "mine\n"


@pytest.mark.usefixtures("played")
def test_export_in_a_dialect_that_there_is_not_names_those_there_are(here) -> None:
    refused = here("log", "export", "cli", "--dialect", "klingon")
    assert refused.code == 2
    assert "deepchat, devminds, onething" in refused.err
