"""handrail run at a terminal: it asks, and what is typed is the answer."""

import json
import re
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.wires.openai_wire import events
from tests.wires.server import Answer

from people import Program

Start = Callable[..., Program]
EDIT = {"text": "I change it.", "calls": [["edit", {"path": "a.txt", "oldText": "one", "newText": "two"}]]}
DONE = {"text": "All is \x1b[31mdone."}


def asking(**more: Any) -> dict[str, Any]:
    return {"calls": [["question", {"question": "Which callers?", "options": ["checkout", "all"], **more}]]}


@pytest.fixture
def start(workspace: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Starts `handrail run` at a terminal with a script."""
    begun: list[Program] = []
    (workspace / "a.txt").write_text("one\n")

    def start(*lines: dict[str, Any], words: tuple[str, ...] = ("x",), **changes: str) -> Program:
        file = tmp_path / "script.json"
        file.write_text(json.dumps(lines))
        model = () if "--model" in words else ("--model", f"scripted:{file}")
        command = [sys.executable, "-m", "handrail", "run", *words, *model]
        begun.append(Program(command, workspace, {**environment, "TERM": "xterm", **changes}))
        return begun[-1]

    yield start
    for program in begun:
        program.close()


def test_a_yes_keeps_and_the_model_goes_on(start: Start, workspace: Path) -> None:
    program = start(EDIT, DONE)
    program.terminal.sees("│ +two")
    assert (workspace / "a.txt").read_text() == "one\n"
    program.press_until(b"y", "✓ edit  a.txt")
    assert program.ends() == 0
    assert "You allowed" not in program.terminal.shown, "one line for the call and its approval"
    assert "All is \\u001b[31mdone.\n" in program.terminal.shown
    assert "1 call, 1 kept, 0 denied" in program.terminal.shown
    assert (workspace / "a.txt").read_text() == "two\n"
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes


def test_a_terminal_shows_what_a_session_shows(start: Start, workspace: Path) -> None:
    shows = {"content": "Half way", "level": "success", "thought": "so you know", "evidence": ["a.txt:1"]}
    begins = {
        "text": "# Plan\n\nI change **one** word.\n- first",
        "calls": [["todo", {"items": [{"text": "look", "status": "done"}]}], ["display", shows]],
    }
    fails = {"calls": [["exec", {"command": "echo why; exit 3"}]]}
    program = start(begins, EDIT, fails, DONE, words=("x", "--mode", "auto"), TERM="xterm-256color")
    assert program.ends() == 0
    shown = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\r", "", program.terminal.shown)
    for row in (
        "  Plan\n",
        "  I change one word.\n",
        "    ✓ look\n",
        "» ✓ Half way\n»   why: so you know\n»   see: a.txt:1\n",
        "     1 - one\n     1 + two\n",
        "    why\n",
        "1 file changed +1 −1",
    ):
        assert row in shown, (row, shown)
    assert re.search(r"✗ exec +echo why; exit 3 .*exit code 3", shown)


def test_plain_edits_are_allowed_for_the_session_and_a_later_one_does_not_ask(start: Start, workspace: Path) -> None:
    again = {"text": "", "calls": [["exec", {"command": "echo three > a.txt"}]]}
    program = start(EDIT, again, DONE)
    program.terminal.sees("│ Change a.txt?")
    program.press_until(b"a", "    no longer asks for plain edits in this session\n")
    assert program.ends() == 0
    assert "    not asked: plain edits are allowed in this session\n" in program.terminal.shown
    assert "2 calls, 1 kept, 0 denied" in program.terminal.shown
    assert (workspace / "a.txt").read_text() == "three\n"


def test_a_call_that_takes_long_to_be_written_is_said(start: Start, openai_wire) -> None:
    whole = list(events("I write it.", calls=[("c1", "write", '{"path": "b.txt", "content": "b"}')]))
    named = next(number for number, one in enumerate(whole) if b'"write"' in one)
    openai_wire.sends(Answer(pieces=tuple(whole[: named + 1]), ending="hang"))
    program = start(words=("x", "--model", openai_wire.model), **openai_wire.environment)
    program.terminal.sees("I write it.")
    program.terminal.sees("● write … the model writes the call")
    program.terminal.press(b"\x03")  # once: a second one ends it at once, and empties what the terminal shows
    program.terminal.sees("Stopping")
    assert program.ends() == 130


def test_a_no_is_told_to_the_model_with_its_reason(start: Start, workspace: Path) -> None:
    program = start(EDIT, DONE, words=("x", "--plain"))
    program.terminal.sees("3 or n: deny it and say why")
    program.press_until(b"n", "Why not?")
    program.terminal.press(b"\x1b[200~not now\x1b[201~")
    program.press_until(b"\r", "DENY edit  a.txt: denied: not now\n")
    assert program.ends() == 0
    assert "1 call, 0 kept, 1 denied" in program.terminal.shown
    assert (workspace / "a.txt").read_text() == "one\n"


def test_later_leaves_it_waiting(start: Start, run) -> None:
    program = start(EDIT, DONE)
    program.terminal.sees("└")
    program.press_until(b"l", "Left for later")
    assert program.ends() == 3
    assert "handrail approvals allow " in program.terminal.shown
    assert len(run("approvals", "--json").json["waiting"]) == 1


def test_an_interrupt_while_asking_leaves_it_waiting(start: Start, run) -> None:
    program = start(EDIT, DONE)
    program.terminal.sees("└")
    program.terminal.press(b"\x03")
    assert program.ends() == 130
    assert "Left waiting. Your files are untouched." in program.terminal.shown
    assert "next: handrail run -c" in program.terminal.shown
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes
    assert len(run("approvals", "--json").json["waiting"]) == 1


def test_going_on_asks_again(start: Start, workspace: Path) -> None:
    first = start(EDIT, DONE, words=("x", "--session", "task", "--park"))
    assert first.ends() == 3
    second = start(EDIT, DONE, words=("--resume", "task"))
    second.terminal.sees("│ +two")
    second.press_until(b"y", "✓ edit  a.txt")
    assert second.ends() == 0
    assert (workspace / "a.txt").read_text() == "two\n"


def test_a_question_takes_a_number_and_enter_alone_is_no_answer(start: Start, run) -> None:
    program = start(asking(), DONE, words=("x", "--session", "task"))
    program.terminal.sees("? Which callers?\n  1  checkout\n  2  all\n  Type a number, then Enter.")
    program.terminal.press(b"\n")
    program.terminal.sees_again("Type a number, then Enter.")
    program.terminal.press(b"7\n")
    program.terminal.sees("There are 2 choices")
    program.terminal.press(b"2\n")
    assert program.ends() == 0
    ends = [
        event
        for event in run("log", "--session", "task", "--events", "--json").json["events"]
        if event["kind"] == "tool_call.end"
    ]
    assert "all" in ends[0]["result"]["content"]


def test_a_question_takes_several_and_own_words_where_it_says_so(start: Start, run) -> None:
    program = start(asking(multiple=True), asking(custom=True), DONE, words=("x", "--session", "task"))
    program.terminal.sees("Type the numbers, with commas between them, then Enter.")
    program.terminal.press(b"1, 2\n")
    program.terminal.sees("Type a number or your own words, then Enter.")
    program.terminal.press("nur Käufer\n".encode())
    assert program.ends() == 0
    ends = [
        event
        for event in run("log", "--session", "task", "--events", "--json").json["events"]
        if event["kind"] == "tool_call.end"
    ]
    assert [word in ends[0]["result"]["content"] for word in ("checkout", "all")] == [True, True]
    assert "nur Käufer" in ends[1]["result"]["content"]


def test_the_end_of_input_leaves_a_question_for_later(start: Start) -> None:
    program = start(asking(), DONE)
    program.terminal.sees("Which callers?")
    program.terminal.press(b"\x04")
    assert program.ends() == 3
    assert "To reply: handrail run --resume " in program.terminal.shown


def test_ctrl_c_stops_the_turn_and_says_how_to_go_on(start: Start) -> None:
    program = start({"calls": [["exec", {"command": "sleep 600.75"}]]}, DONE, words=("x", "--mode", "auto"))
    program.terminal.sees("● exec  sleep 600.75 …")
    program.terminal.press(b"\x03")
    assert program.ends() == 130
    assert "Stopped · " in program.terminal.shown
    assert "next: handrail run -c" in program.terminal.shown


PRINTS = "for n in 1 2 3 4 5 6 7; do echo line $n; done; sleep 600.5"


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_a_command_shows_its_time_and_last_lines_while_it_runs(start: Start, mode: str) -> None:
    program = start({"calls": [["exec", {"command": PRINTS}]]}, DONE, words=("x", "--mode", mode))
    program.terminal.sees("● exec  for n in 1 2 3 4 5 6 7; do echo line $n; done; sleep 600.5 … ")
    program.terminal.sees("\n    line 3\x1b[K\n    line 4\x1b[K\n    line 5\x1b[K\n    line 6\x1b[K\n    line 7\x1b[K")
    program.terminal.sees("sleep 600.5 … 2.")
    program.terminal.press(b"\x03")
    assert program.ends() == 130
    after = program.terminal.shown.rpartition("\x1b[J")[2]
    assert "● exec" not in after
    assert after.count("    line 7\n") == (mode == "auto")  # the last lines of a command that failed stay
    assert "Stopped · " in after


def test_a_plain_run_overwrites_nothing(start: Start) -> None:
    command = "echo one; sleep 1.6; echo two"
    program = start({"calls": [["exec", {"command": command}]]}, DONE, words=("x", "--mode", "auto", "--plain"))
    assert program.ends() == 0
    assert "\x1b" not in program.terminal.painted
    assert f"ok exec  {command}" in program.terminal.shown
