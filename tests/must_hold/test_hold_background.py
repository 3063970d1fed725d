"""kill -9 of the runtime: what went on goes on, is found again, and can be read, written to, ended and forgotten."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import background_victim
import pytest

from handrail import Handrail
from handrail.process.sessions.sessions import ProcessSessions
from handrail.protocol.events import Process, ToolCallError
from handrail.settings import Settings

SECONDS = 60.0


def killed(workspace: Path, state: Path, count: int) -> dict[str, str]:
    """The commands of a runtime that was killed, by their ids."""
    command = [sys.executable, background_victim.__file__, str(workspace), str(state), str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        lines = list(iter(victim.stdout.readline, "up\n"))
        victim.send_signal(signal.SIGKILL)
    return dict(line.rstrip("\n").split(" ", 1) for line in lines)


def when(holds: Callable[[], Any]) -> Any:
    until = time.monotonic() + SECONDS
    while not (found := holds()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def processes_in(workspace: Path) -> list[str]:
    """Whoever works in the workspace."""
    found: list[str] = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{number}/cwd") == str(workspace) and int(number) != os.getpid():
                found.append(Path(f"/proc/{number}/cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_after_kill_9_everything_is_found_again_and_can_be_used(
    workspace: Path, state: Path, count: Callable[[int], int]
) -> None:
    started = killed(workspace, state, count(20))
    [processes] = state.glob("workspaces/*/s/processes")
    # What was waited for is gone with who waited, and nobody has to come for that.
    when(lambda: {one.id for one in ProcessSessions(str(processes)).list_sessions() if one.running} == set(started))
    rail = Handrail(workspace, mode="full", session="s", state_dir=state, settings=Settings())
    try:
        # All that went on is listed, and nothing besides.
        assert {record.id: record.command for record in rail.processes()} == started
        assert {record.state for record in rail.processes()} == {"running"}
        for process, command in started.items():
            use(rail, process, command)
        assert rail.processes() == ()
        [cut_off] = [event for event in rail.events() if isinstance(event, ToolCallError)]
        assert cut_off.result.error is not None
        assert cut_off.result.error.code == "INTERRUPTED"
        told = [(event.process, event.state) for event in rail.events() if isinstance(event, Process)]
        assert sorted(told) == sorted((one, state) for one in started for state in ("started", "ended", "removed"))
    finally:
        rail.end_session()
    assert when(lambda: processes_in(workspace) == [])


def use(rail: Handrail, process: str, command: str) -> None:
    """Writes, reads, ends and forgets."""
    if command.startswith("seq"):
        page = when(lambda: rail.process("log", process, offset=-1))
        when(lambda: rail.process("log", process, offset=-1).content == "20000\n")
        assert page.ok
    elif command == "cat":
        assert rail.process("write", process, data="again\n").ok
        when(lambda: rail.process("log", process).content == "again\n")
    else:
        assert rail.process("write", process, data="print(6 * 7)\n").ok
        when(lambda: "42\n" in rail.process("log", process).content)
    assert rail.process("kill", process).data.process.state == "ended"
    assert rail.process("remove", process).ok


def test_the_end_of_a_session_leaves_nothing(workspace: Path, state: Path) -> None:
    named = Handrail(workspace, mode="full", session="s", state_dir=state, settings=Settings())
    nameless = Handrail(workspace, mode="full", state_dir=state, settings=Settings())
    folder = state / "workspaces"
    for command in ("cat", "setsid sleep 1000 & wait", "true"):
        assert named.exec(command, background=True).ok
    for command in ("cat", "trap '' TERM; sleep 1000 & setsid sleep 1000 & wait", "true"):
        assert nameless.exec(command, background=True).ok
    nameless.close()
    named.close()
    assert len(list(folder.glob("*/*/processes/*"))) == 3  # the named one goes on
    again = Handrail(workspace, mode="full", session="s", state_dir=state, settings=Settings())
    assert len(again.processes()) == 3
    again.end_session()
    assert list(folder.glob("*/*/processes/*")) == []
    assert when(lambda: processes_in(workspace) == [])
