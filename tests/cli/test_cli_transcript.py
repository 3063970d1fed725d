"""handrail log: what was said and what was done, in the order in which it happened."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

PROMPT = "make it two\nplease"
LOOK = {"text": "I look.", "calls": [["grep", {"pattern": "one", "path": "a.txt"}]]}
CHANGE = {"text": "I change it.", "calls": [["edit", {"path": "a.txt", "oldText": "one", "newText": "two"}]]}
SECRET = {"calls": [["read", {"path": ".env"}], ["nothing", {}]]}
DONE = {"text": "It is two now.\nAll of it."}


@pytest.fixture
def played(here, workspace: Path, tmp_path: Path) -> None:
    """A turn with four calls: allowed, allowed with a change, refused, unknown."""
    (workspace / "a.txt").write_text("one\n")
    (workspace / ".env").write_text("TOKEN=1\n")
    (tmp_path / "script.json").write_text(json.dumps([LOOK, CHANGE, SECRET, DONE]))
    done = here("run", PROMPT, "--model", f"scripted:{tmp_path / 'script.json'}", "--mode", "auto", "-q")
    assert done.code == 0


def calls(here, *words: str) -> list[dict[str, Any]]:
    return [entry for entry in here("log", *words, "--json").json["entries"] if entry["kind"] == "call"]


@pytest.mark.usefixtures("played")
def test_the_log_is_the_prompt_the_answers_and_a_row_for_each_call(here) -> None:
    day, *lines = here("log", "-q").out.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    timed = [line for line in lines if re.match(r"\d\d:\d\d:\d\d  ", line)]
    assert " ".join(line.split()[1] for line in timed) == "you model grep model edit read nothing model"
    assert lines[1].split() == ["please"], "the second line of the prompt is indented"
    grep, edit, read, unknown = (line for line in timed if line.split()[1] in {"grep", "edit", "read", "nothing"})
    assert re.search(r'"one" in a.txt +allowed +1 match.*; \d\.\d\d s$', grep)
    assert re.search(r"a.txt +allowed +\+1 −1; a.txt; undo 1; \d\.\d\d s$", edit)
    assert re.search(r"\.env +refused +POLICY_DENIED: ", read)
    assert re.search(r" –  +UNKNOWN_TOOL: ", unknown)
    assert lines[-2].endswith("model    It is two now.")
    assert lines[-1].strip() == "All of it."


@pytest.mark.usefixtures("played")
def test_the_pieces_of_an_answer_are_joined(here) -> None:
    pieces = [one["text"] for one in here("log", "--events", "--json").json["events"] if one["kind"] == "text"]
    assert len(pieces) > 3
    texts = [entry["text"] for entry in here("log", "--json").json["entries"] if entry["kind"] == "answer"]
    assert texts == ["I look.", "I change it.", "It is two now.\nAll of it."]


@pytest.mark.usefixtures("played")
def test_the_json_of_the_transcript_has_a_schema_of_its_own(here) -> None:
    found = here("log", "--json").json
    assert (found["schema"], found["broken"]) == ("handrail.transcript/1", [])
    assert found["lastSeq"] == here("log", "--events", "--json").json["lastSeq"]
    assert found["entries"][0]["text"] == PROMPT
    edit = calls(here)[1]
    assert (edit["tool"], edit["subject"], edit["decision"], edit["ok"]) == ("edit", "a.txt", "allowed", True)
    assert (edit["files"], edit["undo"], edit["durationMs"] > 0) == (["a.txt"], 1, True)


FILTERS: list[tuple[list[str], list[str]]] = [
    (["--tool", "edit"], ["call"]),
    (["--grep", "MAKE it"], ["prompt"]),
    (["--grep", "undefined"], []),
    (["--since", "2h", "--tool", "grep"], ["call"]),
    (["--since", "2100-01-01"], []),
    (["--limit", "1"], ["answer"]),
    (["--after", "0", "--limit", "2"], ["prompt", "answer"]),
]


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize(("words", "kinds"), FILTERS)
def test_filters_leave_what_matches(here, words: list[str], kinds: list[str]) -> None:
    assert [entry["kind"] for entry in here("log", *words, "--json").json["entries"]] == kinds
    done = here("log", *words)
    assert done.code == 0
    assert bool(done.out) is bool(kinds)
    assert ("nothing in this session matches" in done.err) is not bool(kinds)


@pytest.mark.usefixtures("played")
def test_the_same_filters_work_on_events(here) -> None:
    kinds = [one["kind"] for one in here("log", "--events", "--tool", "edit", "--json").json["events"]]
    assert kinds == ["tool_call.start", "tool_call.running", "change", "tool_call.end"]
    assert len(here("log", "--events", "--grep", "MAKE IT", "--json").json["events"]) == 1
    assert here("log", "--events", "--since", "2100-01-01", "--json").json["events"] == []


@pytest.mark.usefixtures("played")
def test_a_note_names_the_command_that_shows_the_rest(here) -> None:
    assert here("log", "--limit", "1").err.endswith("the last 1 of 8; from the beginning: handrail log --after 0\n")
    assert re.search(r"7 more: handrail log --after \d+\n", here("log", "--limit", "1", "--after", "0").err)


@pytest.mark.parametrize("words", [["--changes"], ["--sessions"], ["--line", "a.txt:1"]])
def test_a_filter_of_another_list_is_refused(here, words: list[str]) -> None:
    done = here("log", *words, "--tool", "edit")
    assert (done.code, done.err) == (
        2,
        "error: --since, --tool and --grep work only with the transcript and --events.\nnext: handrail help log\n",
    )


def test_a_call_that_asked_tells_so_while_it_waits_and_after_the_answer(here, run) -> None:
    run("call", "write", '{"path": "new.txt", "content": "one\\n"}')
    [waiting] = calls(here)
    assert (waiting["decision"], waiting["outcome"], waiting["ok"]) == ("asked", "waiting for approval", None)
    [request] = run("approvals", "--json").json["waiting"]
    run("approvals", "allow", request["short"])
    [kept] = calls(here)
    assert (kept["decision"], kept["files"], kept["undo"], kept["ok"]) == ("asked", ["new.txt"], 1, True)
    here("undo", "-q")
    undone = calls(here)[-1]
    assert (undone["tool"], undone["subject"], undone["files"]) == ("undo", "change 1", ["new.txt"])


def test_a_call_that_a_person_refused_is_refused(here, run) -> None:
    run("call", "write", '{"path": "new.txt", "content": "one\\n"}')
    [request] = run("approvals", "--json").json["waiting"]
    run("approvals", "deny", request["short"], "--reason", "not now")
    [refused] = calls(here)
    assert (refused["decision"], refused["ok"]) == ("refused", False)
    assert "not now" in refused["outcome"]


def test_a_command_that_changed_nothing_was_not_asked_about(here, run) -> None:
    run("call", "exec", '{"command": "python3 -c pass"}')
    [call] = calls(here)
    assert (call["decision"], call["subject"]) == ("not asked", "python3 -c pass")


def test_words_of_a_model_cannot_pass_for_a_row(here, tmp_path: Path) -> None:
    forged = "Fine.\n12:00:00  edit  a.txt  allowed  +1 −1"
    (tmp_path / "script.json").write_text(json.dumps([{"text": forged}]))
    here("run", "x", "--model", f"scripted:{tmp_path / 'script.json'}", "-q")
    assert here("log", "-q").out.splitlines()[-1].startswith("    ")


def test_a_broken_event_is_named_and_the_rest_is_shown(here, state: Path) -> None:
    here("call", "ls", '{"path": "."}')
    [journal] = state.glob("workspaces/*/cli/journal.db")
    with sqlite3.connect(journal) as connection:
        connection.execute("UPDATE event SET data = ? WHERE seq = 1", (b'{"kind":',))
    connection.close()
    done = here("log", "-q")
    assert (done.code, " ls " in done.out) == (0, True)
    assert done.err.startswith("warning: event 1 cannot be read: ")
    assert [one["seq"] for one in here("log", "--json").json["broken"]] == [1]


def test_a_row_about_the_folder_itself_names_it(here) -> None:
    here("ls", "-q")
    assert re.search(r"ls +\. +allowed +\d+ entr(y|ies) in \.; ", here("log", "-q").out)
