"""The library at a terminal: who is asked, who is not, and what becomes of the terminal."""

import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import handrail
from people import Program

SCRIPT = """
import sys, threading
from datetime import UTC, datetime
from handrail import Handrail, ToolCall
from handrail.settings import Settings

def write(name):
    now = datetime.now(UTC)
    return ToolCall(tool_call_id=name, name="write", args={"path": name, "content": "x"}, trace_id=name, timestamp=now)

def said(result):
    print("RESULT", result.error.code if result.error else "ok", result.content.splitlines()[0], flush=True)

with Handrail(sys.argv[1], mode="ask", session="s", state_dir=sys.argv[2], settings=Settings(), **OPTIONS) as rail:
    BODY
    print("WAITING", len(rail.waiting()), flush=True)
"""
ONE = 'said(rail.write("a.txt", "x"))'
Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path, workspace: Path) -> Iterator[Start]:
    """Starts a program that uses the library."""
    begun: list[Program] = []

    def start(
        body: str = ONE, options: str = "{}", *, piped: bool = False, shell: str = "", **environment: str
    ) -> Program:
        script = SCRIPT.replace("OPTIONS", options).replace("BODY", body.replace("\n", "\n    "))
        source = str(Path(handrail.__file__).parent.parent)
        given = {"PATH": os.environ["PATH"], "PYTHONPATH": source, "TERM": "xterm", "LANG": "C.UTF-8", **environment}
        words = [sys.executable, "-c", script, str(workspace), str(tmp_path / "state")]
        words = ["bash", "-c", shell, "bash", *words] if shell else words
        begun.append(Program(words, workspace, {"HOME": str(tmp_path), **given}, piped=piped))
        return begun[-1]

    yield start
    for program in begun:
        program.close()


def test_without_on_permission_the_person_at_the_terminal_is_asked(start: Start, workspace: Path) -> None:
    program = start(piped=True)
    program.terminal.sees("Permission · write")
    program.press_until(b"y", "✓ You allowed Write a.txt · undo 1")
    assert program.ends() == 0
    assert program.piped().decode().splitlines()[-1] == "WAITING 0"
    assert (workspace / "a.txt").read_text() == "x"
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes


def test_of_a_batch_each_question_says_which_it_is_and_later_leaves_the_rest(start: Start, workspace: Path) -> None:
    program = start('print("PARKED", type(rail.batch([write("a"), write("b")])).__name__)')
    program.terminal.sees("Permission 1 of 2 · write")
    program.press_until(b"y", "You approved Write a · runs when its whole batch has answers")
    program.terminal.sees("Permission 2 of 2 · write")
    program.press_until(b"l", "Left for later")
    program.terminal.sees("PARKED Parked\nWAITING 1")
    assert program.ends() == 0
    assert not (workspace / "a").exists()


THREAD = f"thread = threading.Thread(target=lambda: {ONE})\nthread.start()\nthread.join()"
NOBODY = [
    pytest.param(THREAD, "{}", {}, id="thread"),
    pytest.param(ONE, '{"on_permission": lambda request: None}', {}, id="the program says later"),
    pytest.param(ONE, "{}", {"CI": "true"}, id="CI"),
]


@pytest.mark.parametrize(("body", "options", "environment"), NOBODY)
def test_where_nobody_is_to_be_asked_the_call_waits(start: Start, body: str, options: str, environment) -> None:
    program = start(body, options, **environment)
    program.terminal.sees("RESULT PERMISSION_REQUIRED")
    program.terminal.sees("WAITING 1")
    assert program.ends() == 0
    assert "Permission ·" not in program.terminal.shown


def test_a_job_in_the_background_asks_nobody_and_is_not_stopped(start: Start) -> None:
    program = start(shell='set -m; "$@" & wait')
    program.terminal.sees("RESULT PERMISSION_REQUIRED")
    program.terminal.sees("WAITING 1")
    program.ends()


def test_unattended_refuses_at_a_terminal_too(start: Start) -> None:
    program = start(ONE, '{"unattended": True}')
    program.terminal.sees("RESULT PERMISSION_DENIED")
    assert program.ends() == 0
    assert "Permission ·" not in program.terminal.shown


def test_an_interrupt_at_the_question_leaves_it_waiting_and_the_terminal_as_it_was(start: Start) -> None:
    program = start("try:\n    rail.write('a.txt', 'x')\nexcept KeyboardInterrupt:\n    print('INTERRUPTED')")
    program.terminal.sees("└")
    program.terminal.press(b"\x03")
    program.terminal.sees("INTERRUPTED\nWAITING 1")
    assert program.ends() == 0
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes


def test_a_signal_that_ends_the_process_leaves_the_terminal_as_it_was(start: Start) -> None:
    program = start()
    program.terminal.sees("└")
    os.kill(program.pid, signal.SIGTERM)
    assert program.ends() == -signal.SIGTERM
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes
    assert program.terminal.shown.rstrip().endswith("\x1b[?2004l")


def test_a_process_that_was_stopped_unasked_takes_single_keys_again_when_it_goes_on(start: Start) -> None:
    """SIGSTOP cannot be handled: the shell has set the terminal for itself meanwhile."""
    program = start()
    program.terminal.sees("└")
    os.kill(program.pid, signal.SIGSTOP)
    os.waitpid(program.pid, os.WUNTRACED)
    termios.tcsetattr(program.terminal.device, termios.TCSANOW, program.terminal.modes)
    os.kill(program.pid, signal.SIGCONT)
    program.terminal.sees("└", times=2)
    program.press_until(b"y", "You allowed Write a.txt · undo 1")
    program.ends()
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes


def test_a_process_that_is_stopped_gives_the_terminal_back_and_asks_again_when_it_goes_on(start: Start) -> None:
    program = start(shell='set -m; "$@"; echo STOPPED $?; read -r; fg; echo ENDED $?')
    program.terminal.sees("└")
    program.terminal.press(b"\x1a")
    program.terminal.sees(f"STOPPED {128 + signal.SIGTSTP}")
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes
    program.terminal.press(b"\n")
    program.terminal.sees("└", times=2)
    program.press_until(b"y", "You allowed Write a.txt · undo 1")
    program.terminal.sees("ENDED 0")
    program.ends()
    assert termios.tcgetattr(program.terminal.device) == program.terminal.modes
