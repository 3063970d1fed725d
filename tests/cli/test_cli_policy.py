"""policy: its sub-commands, the table of modes, the test of the rules, the replay."""

import json
import sqlite3
from pathlib import Path

import pytest

from handrail.policy.verdict import TABLE
from handrail.protocol.decisions import MODES

SUBCOMMANDS = ["policy explain", "policy modes", "policy test", "policy replay"]


def test_policy_alone_lists_its_commands_as_wrong_usage_and_with_help_as_an_answer(here) -> None:
    alone, asked = here("policy"), here("policy", "--help")
    assert (alone.code, alone.out, asked.code, asked.err) == (2, "", 0, "")
    assert alone.err == asked.out
    listed = [line for line in asked.out.splitlines() if line.startswith("  ") and line[2] != " "]
    assert [line.split("  ")[1] for line in listed] == SUBCOMMANDS


MISTAKES = [
    (("policy", "explan"), "'policy explan'. Did you mean policy explain?\nnext: handrail help policy"),
    (("policy", "xyzzy"), "'policy xyzzy'.\nnext: handrail help policy"),
    (("policy", "--json"), "'policy --json'.\nnext: handrail help policy"),
    (("plicy",), "'plicy'. Did you mean policy?\nnext: handrail help"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_a_mistake_names_the_nearest_command(here, words, sentence: str) -> None:
    done = here(*words)
    assert (done.code, done.out, done.err) == (2, "", f"error: there is no command {sentence}\n")


# modes


def test_the_table_of_modes_is_the_one_that_decides(here) -> None:
    found = here("policy", "modes", "--json").json
    assert (found["schema"], found["modes"], found["table"]) == ("handrail.policy/1", list(MODES), TABLE)


def test_a_person_reads_a_row_for_everything_a_call_may_do(here) -> None:
    shown = here("policy", "modes").out
    assert "confirm" not in shown
    head, *rows = shown.replace("needs approval", "confirm").splitlines()
    assert head.split() == list(MODES)
    assert [tuple(row.split()) for row in rows] == [
        (subject, *(cells[mode] for mode in MODES)) for subject, cells in TABLE.items()
    ]


# test


def test_without_rules_the_built_in_examples_come_out(here) -> None:
    done = here("policy", "test")
    assert (done.code, done.out.endswith("examples have the expected decision\n")) == (0, True)
    found = here("policy", "test", "--json").json
    assert (found["schema"], found["ok"], found["failures"]) == ("handrail.policy/1", True, [])
    assert found["examples"] > 100


RULE = """
[[rule]]
id = "tests"
allow = "pytest"
match = ["pytest -q"]
no_match = ["python -m pytest"]
"""


def test_the_examples_of_the_rules_in_force_are_counted_too(here, config) -> None:
    before = here("policy", "test", "--json").json["examples"]
    config(RULE)
    assert here("policy", "test", "--json").json["examples"] == before + 2


def test_an_example_that_does_not_come_out_is_told_with_what_did(here, config) -> None:
    wrong = RULE.replace('"pytest -q"', '"pytest -q", "tox"').replace('"python -m pytest"', '"pytest tests"')
    config(wrong)
    done = here("policy", "test", "-q")
    head, first, second, last = done.out.splitlines()
    assert (done.code, head.split()) == (1, ["rule", "example", "problem", "what", "came", "out"])
    assert first.startswith("rule tests (user:2)  tox           should match")
    assert "  confirm by exec.test: " in first
    assert second.startswith("rule tests (user:2)  pytest tests  should not match")
    assert "  allow by tests: " in second
    assert last.startswith("2 of ")
    found = here("policy", "test", "--json").json
    assert (found["ok"], [one["example"] for one in found["failures"]]) == (False, ["tox", "pytest tests"])


def test_a_rule_that_never_decides_is_a_remark(here, config) -> None:
    config('[[rule]]\nid = "no-tests"\ndeny = "pytest"\n[[rule]]\nid = "no-q"\ndeny = "pytest -q"\n')
    found = here("policy", "test", "--json").json
    assert (found["ok"], len(found["remarks"])) == (True, 1)
    assert f"{found['remarks'][0]}\n" in here("policy", "test").err


BROKEN = [
    "[[rule]]\nid = 1\n",
    "[[rule]",
    '[[rule]]\nid = "a"\nallow = "bash"\nany_args = true\n',
    '[[rule]]\nid = "a"\ndeny = "**"\ntool = "wrte"\n',
]


@pytest.mark.parametrize("text", BROKEN)
def test_settings_that_cannot_be_used_are_exit_2(here, config, text: str) -> None:
    config(text)
    done = here("policy", "test")
    assert (done.code, done.out) == (2, "")


# replay


@pytest.fixture
def played(here, workspace: Path) -> None:
    """Two writes in one session, a read in another."""
    (workspace / "a.txt").write_text("hello\n")
    here("call", "write", '{"path": "one.txt", "content": ""}', "--mode", "auto")
    here("call", "write", '{"path": "two.txt", "content": ""}')
    here("call", "read", '{"path": "a.txt"}', "--session", "other")
    here("call", "read", '{"pth": "a.txt"}', "--session", "other")


@pytest.mark.usefixtures("played")
def test_replay_tells_how_many_differ_and_which(here) -> None:
    assert here("policy", "replay").out == "0 of 3 calls would differ\n"  # each in the mode that it was made in
    done = here("policy", "replay", "--mode", "ask")
    first, head, row = done.out.splitlines()
    assert (done.code, first) == (0, "1 of 3 calls would differ in mode ask")
    assert head.split() == ["time", "session", "tool", "subject", "then", "now", "rule"]
    assert row.split()[2:] == ["cli", "write", "one.txt", "allow", "→", "needs", "approval", "fs.write"]
    assert "1 call left out: the call was invalid, so policy did not decide\n" in done.err


@pytest.mark.usefixtures("played")
def test_replay_as_json_has_every_difference_whole(here) -> None:
    found = here("policy", "replay", "--mode", "plan", "--json").json
    assert (found["schema"], found["mode"], found["sessions"], found["calls"]) == ("handrail.policy/1", "plan", 2, 3)
    assert [(one["subject"], one["then"], one["now"]) for one in found["differ"]] == [
        ("one.txt", "allow", "deny"),
        ("two.txt", "confirm", "deny"),
    ]
    assert (found["unjudged"], found["broken"], found["gone"], found["unreadable"]) == (1, 0, {}, [])


@pytest.mark.usefixtures("played")
def test_replay_can_be_about_one_session(here) -> None:
    assert here("policy", "replay", "--session", "other").out == "0 of 1 call would differ\n"
    done = here("policy", "replay", "--session", "none")
    assert (done.code, done.out) == (1, "")
    assert "has no session 'none'. Nothing was done. Its sessions: cli, other." in done.err


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize(
    ("since", "calls"),
    [("1h", 3), ("1d", 3), ("5m", 3), ("2000-01-01", 3), ("2000-01-01T10:00:00+02:00", 3), ("2999-12-31", 0)],
)
def test_replay_can_be_about_the_last_while(here, since: str, calls: int) -> None:
    assert here("policy", "replay", "--since", since, "--json").json["calls"] == calls


@pytest.mark.parametrize("since", ["", "7", "d", "-1d", "yesterday", "9" * 30 + "d", "2026-13-01", "٧d", "0001-01-01"])
def test_replay_refuses_a_time_that_is_none(here, since: str) -> None:
    done = here("policy", "replay", f"--since={since}")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: argument --since: must be a time such as 7d")


def test_a_workspace_without_sessions_has_nothing_to_replay(here, state: Path) -> None:
    assert here("policy", "replay").out == "0 of 0 calls would differ\n"
    assert not state.exists()


@pytest.mark.usefixtures("played")
def test_what_cannot_be_replayed_is_said_and_no_reason_to_stop(here, state: Path) -> None:
    [journal] = state.glob("workspaces/*/cli/journal.db")
    connection = sqlite3.connect(journal)
    with connection:
        connection.execute("UPDATE event SET data = '{' WHERE seq = 1")
    connection.close()
    [other] = state.glob("workspaces/*/other/journal.db")
    other.write_bytes(b"\x00" * 5000)
    done = here("policy", "replay", "-q")
    assert (done.code, done.out) == (0, "0 of 1 call would differ\n")
    assert "1 call left out: the record cannot be read\n" in done.err
    assert f"a session left out: the journal {other} cannot be read: " in done.err


def test_calls_of_a_tool_that_is_gone_are_named(here, config, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    code = "from handrail import tool\n\n@tool\ndef shout(text: str) -> str:\n    'Shouts.'\n    return text\n"
    (tmp_path / "tools" / "shout.py").write_text(code)
    file = config(f'[tools]\nfolders = ["{tmp_path}/tools"]\n')
    assert here("call", "shout", '{"text": "a"}', "--mode", "full").code == 0
    assert here("policy", "replay", "--mode", "ask").out.startswith("1 of 1 call would differ in mode ask")
    file.unlink()
    done = here("policy", "replay")
    assert done.out == "0 of 0 calls would differ\n"
    assert "1 call of shout left out: no tool of that name is offered\n" in done.err


@pytest.mark.usefixtures("played")
def test_replay_with_a_rule_shows_what_the_rule_would_have_done(here, config) -> None:
    config('[[rule]]\nid = "frozen"\ndeny = "one.*"\ntool = "write"\n')
    found = here("policy", "replay", "--mode", "auto", "--json").json
    assert [(one["subject"], one["now"], one["rule"]) for one in found["differ"]] == [
        ("one.txt", "deny", "frozen"),
        ("two.txt", "allow", "fs.write"),
    ]


@pytest.mark.usefixtures("played")
def test_replay_writes_nothing_down(here, state: Path) -> None:
    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in state.rglob("*") if path.suffix in {".db", ".jsonl"}}

    before = content()
    here("policy", "replay")
    assert content() == before


def test_a_subject_of_a_hostile_name_is_made_visible(here) -> None:
    here("call", "write", json.dumps({"path": "\x1b[2J\n.txt", "content": ""}), "--mode", "auto")
    done = here("policy", "replay", "--mode", "ask")
    assert "\x1b" not in done.out
    assert len(done.out.splitlines()) == 3
