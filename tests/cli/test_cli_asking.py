"""handrail at a terminal: it asks, and whoever answers first, here or elsewhere, has answered."""

import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from people import Program

WRITE = '{"path": "new.txt", "content": "one\\n"}'
Start = Callable[..., Program]


@pytest.fixture
def start(workspace: Path, environment: dict[str, str]) -> Iterator[Start]:
    """Starts `handrail …` at a terminal."""
    begun: list[Program] = []

    def start(*words: str, piped: bool = False, **changes: str) -> Program:
        command = [sys.executable, "-m", "handrail", *words]
        begun.append(Program(command, workspace, {**environment, "TERM": "xterm", **changes}, piped=piped))
        return begun[-1]

    yield start
    for program in begun:
        program.close()


def test_a_call_asks_and_a_yes_runs_it(start: Start, run, workspace: Path) -> None:
    program = start("call", "write", WRITE, "-q")
    program.terminal.sees("│ +one")
    assert not (workspace / "new.txt").exists()
    program.press_until(b"y", "✓ You allowed Write new.txt · undo 1\n")
    assert program.ends() == 0
    assert (workspace / "new.txt").read_text() == "one\n"
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes
    assert run("approvals", "--json").json["waiting"] == []


@pytest.mark.parametrize(("key", "code"), [(b"y", 0), (b"n", 1), (b"\r", 1)])
def test_trust_shows_its_lines_and_asks(start: Start, run, workspace: Path, key: bytes, code: int) -> None:
    (workspace / "handrail.toml").write_text('mode = "auto"\n')
    program = start("trust")
    program.terminal.sees("Trust these lines?")
    assert 'line 1: mode = "auto"' in program.terminal.shown
    assert run("trust", "--list", "--json").json["projects"] == []
    program.press_until(key, "Trusted until the file changes." if code == 0 else "Nothing was trusted.")
    assert program.ends() == code
    assert len(run("trust", "--list", "--json").json["projects"]) == (code == 0)


def test_a_kept_preview_leaves_one_line_and_the_output(start: Start) -> None:
    program = start("call", "exec", '{"command": "echo hello > made; echo shown"}')
    program.terminal.sees("Keep this file?")
    program.press_until(b"y", "✓ You kept echo hello > made; echo shown · 1 file · undo 1\n")
    assert program.ends() == 0
    assert program.terminal.shown.rpartition("undo 1\n")[2] == "shown\n"


def test_an_edit_without_json_asks_too(start: Start, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    program = start("edit", "a.txt", "one", "two", "-q")
    program.terminal.sees("│ +two")
    program.press_until(b"y", "✓ You allowed Edit a.txt · undo 1\n")
    assert program.ends() == 0
    assert program.terminal.shown.endswith("✓ You allowed Edit a.txt · undo 1\n"), "exactly one line"
    assert (workspace / "a.txt").read_text() == "two\n"


def test_a_no_is_told_with_its_reason(start: Start) -> None:
    program = start("call", "write", WRITE, "-q", "--plain")
    program.terminal.sees("3 or n: deny it and say why")
    assert "\x1b" not in program.terminal.shown
    program.press_until(b"n", "Why not?")
    program.terminal.press(b"\x1b[200~not now\x1b[201~")
    program.press_until(b"\r", "denied: You denied Write new.txt: ")
    assert program.ends() == 1
    assert program.terminal.shown.endswith("denied: You denied Write new.txt: not now\n"), "exactly one line"


def test_an_interrupt_leaves_the_request_waiting(start: Start, run, workspace: Path) -> None:
    program = start("call", "write", WRITE, "-q")
    program.terminal.sees("└")
    program.terminal.press(b"\x03")
    assert program.ends() == 130
    assert "Left waiting. Your files are untouched. handrail approvals lists it." in program.terminal.shown
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes
    [waiting] = run("approvals", "--json").json["waiting"]
    assert run("approvals", "allow", waiting["short"]).code == 0
    assert (workspace / "new.txt").exists()


def test_of_two_who_answer_one_wins_and_the_other_is_told(start: Start, run, workspace: Path) -> None:
    program = start("call", "write", WRITE, "-q")
    program.terminal.sees("└")
    [waiting] = run("approvals", "--json").json["waiting"]
    elsewhere = run("approvals", "allow", waiting["id"], "-q")
    assert (elsewhere.code, elsewhere.out) == (0, "✓ You allowed Write new.txt · undo 1\n")
    program.terminal.sees("Answered elsewhere")
    assert program.ends() == 0
    assert "Created new.txt" in program.terminal.shown
    late = run("approvals", "allow", waiting["id"])
    assert (late.code, late.err.count("already has an answer: once. Nothing more was run.")) == (1, 1)


NEVER_ASKED = [
    pytest.param(("--json",), {}, 3, id="json"),
    pytest.param(("--unattended",), {}, 1, id="unattended"),
    pytest.param((), {"CI": "1"}, 1, id="CI"),
]


@pytest.mark.parametrize(("words", "environment_changes", "code"), NEVER_ASKED)
def test_where_it_does_not_ask(start: Start, words, environment_changes, code: int) -> None:
    program = start("call", "write", WRITE, *words, **environment_changes)
    assert program.ends() == code
    assert "deny it and say why" not in program.terminal.shown


def test_what_goes_into_a_pipe_is_not_interrupted_by_a_question(start: Start) -> None:
    program = start("call", "write", WRITE, piped=True)
    assert program.piped().startswith("Permission · write\n".encode())
    assert program.ends() == 3


def test_watch_asks_about_what_comes_and_shows_what_came_of_it(start: Start, run, workspace: Path) -> None:
    program = start("approvals", "--watch")
    program.terminal.sees("waiting for requests; Ctrl-C ends it")
    assert run("call", "write", WRITE, "--session", "other").code == 3
    program.terminal.sees(f"session other in {workspace}")
    program.terminal.sees("Permission · write")
    program.press_until(b"y", "✓ You allowed Write new.txt · undo 1")
    program.terminal.press(b"\x03")
    assert program.ends() == 130
    assert (workspace / "new.txt").exists()
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes


def test_a_preview_reaches_a_terminal_written_out_and_later_is_exit_3_with_how_to_answer(start: Start) -> None:
    program = start("call", "write", '{"path": "a.txt", "content": "\\u001b[2J\\u202e\\n"}', TERM="dumb")
    program.terminal.sees("+\\u001b[2J\\u202e")
    program.press_until(b"l", "Left for later")
    program.terminal.sees("To answer it: handrail approvals allow ")
    assert program.ends() == 3
    assert "\x1b" not in program.terminal.shown


TRIED = '{"command": "sed -i s/one/two/ a.txt; echo printed"}'


def test_a_trial_is_shown_looked_at_and_kept(start: Start, run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    program = start("call", "exec", TRIED, "-q")
    program.terminal.sees("Ran in a disposable copy: exit 0 in ")
    program.terminal.sees("M a.txt  +1 −1")
    program.press_until(b"d", "    1 + two")
    program.press_until(b"q", "\x1b[?1049l")
    assert (workspace / "a.txt").read_text() == "one\n"
    program.press_until(b"y", "✓ You kept sed -i s/one/two/ a.txt; echo printed · 1 file · undo 1\n")
    assert program.ends() == 0
    assert (workspace / "a.txt").read_text() == "two\n"
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes


def test_a_trial_that_is_out_of_date_is_tried_again_at_the_terminal(start: Start, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    program = start("call", "exec", TRIED, "-q")
    program.terminal.sees("y keep this result")
    (workspace / "a.txt").write_text("one and one\n")
    program.press_until(b"y", "\x1b[J")
    program.terminal.sees("Out of date: a.txt changed since. r try again.")
    program.press_until(b"r", "Running it in a disposable copy")
    program.terminal.sees_again("Ran in a disposable copy: exit 0 in ")
    program.press_until(b"y", "✓ You kept ")
    assert program.ends() == 0
    assert (workspace / "a.txt").read_text() == "two and one\n"


def test_a_changed_command_that_policy_refuses_is_not_tried_and_the_question_comes_back(
    start: Start, run, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / ".env").write_text("KEY=secret\n")
    program = start("call", "exec", TRIED, "-q")
    program.terminal.sees("y keep this result")
    program.press_until(b"e", "Change the command;")
    program.terminal.press(b"\x15")
    program.terminal.ends_with("\x1b[K$ \x1b[3G")
    program.terminal.press(b"\x1b[200~cat .env > x\x1b[201~")
    program.terminal.sees("$ cat .env > x")
    program.press_until(b"\r", "Not run again: ")
    program.terminal.sees_again("y keep this result")
    assert ".env" in program.terminal.shown_since.partition("Not run again: ")[2].partition("\n")[0]
    program.press_until(b"y", "✓ You kept sed -i s/one/two/ a.txt; echo printed · 1 file · undo 1\n")
    assert program.ends() == 0
    assert not (workspace / "x").exists()


def test_only_the_output_is_taken_at_the_terminal(start: Start, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    program = start("call", "exec", TRIED, "-q", "--plain")
    program.terminal.sees("o: drop changes, show output to model")
    program.press_until(b"o", "ok: You took only the output of sed -i s/one/two/ a.txt; echo printed;")
    assert program.ends() == 0
    assert (workspace / "a.txt").read_text() == "one\n"


def test_watch_tries_again_what_another_session_asked(start: Start, run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    program = start("approvals", "--watch")
    program.terminal.sees("waiting for requests; Ctrl-C ends it")
    assert run("call", "exec", TRIED, "--session", "other").code == 3
    program.terminal.sees("y keep this result")
    program.press_until(b"r", "Running it in a disposable copy")
    program.terminal.sees_again("Ran in a disposable copy: exit 0 in ")
    program.press_until(b"y", "· 1 file · undo 1\n")
    program.terminal.press(b"\x03")
    assert program.ends() == 130
    assert (workspace / "a.txt").read_text() == "two\n"


def test_what_takes_longer_than_a_second_is_named_before_it_is_asked_about(start: Start) -> None:
    program = start("call", "exec", '{"command": "tail -f /dev/null; touch made", "timeoutMs": 1500}')
    program.terminal.sees("waiting for exec tail -f /dev/null; touch made … Ctrl-C ends it\n")
    program.terminal.sees("it took too long, and was stopped after ")
    program.press_until(b"l", "Left for later")
    assert program.ends() == 3
