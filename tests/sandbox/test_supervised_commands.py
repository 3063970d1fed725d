"""How a command starts and ends under a supervisor."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from supervising import PYTHON, a_host, confined, run, start, status_of

from handrail.kernel.files import write_memory_file
from handrail.kernel.landlock import read_abi_version
from handrail.protocol.errors import ToolError
from handrail.sandbox.landlock import launch_supervised
from handrail.sandbox.profile import ResourceLimits
from handrail.sandbox.supervisor.plan import SupervisorPlan

TIERS = [pytest.param(1, marks=pytest.mark.skipif(not read_abi_version(), reason="no Landlock")), 0]
pytestmark = pytest.mark.parametrize("tier", TIERS)


@pytest.mark.parametrize(
    ("text", "code"),
    [("true", 0), ("false", 1), ("exit 42", 42), ("no-such-command", 127), ("kill -TERM $$", 143), ("kill -9 $$", 137)],
)
def test_the_exit_code_is_the_commands(tmp_path: Path, workspace: Path, tier: int, text: str, code: int) -> None:
    outcome = run(confined(workspace), a_host(tmp_path), text, tier)
    assert outcome.exit_code == code
    assert [list(document) for document in outcome.status] == [["child-pid"], ["exit-code"]]
    assert outcome.status[-1] == {"exit-code": code}


def test_a_command_that_kills_its_own_group_leaves_the_supervisor_be(
    tmp_path: Path, workspace: Path, tier: int
) -> None:
    outcome = run(confined(workspace), a_host(tmp_path), "kill -9 0", tier)
    assert outcome.status[-1] == {"exit-code": 137}


def test_the_command_has_its_number_its_folder_and_a_clean_environment(
    tmp_path: Path, workspace: Path, tier: int
) -> None:
    (workspace / "inner").mkdir()
    confinement = confined(workspace, cwd=str(workspace / "inner"))
    outcome = run(confinement, a_host(tmp_path), "echo $$; pwd; env", tier)
    number, folder, *variables = outcome.output.splitlines()
    assert outcome.status[0] == {"child-pid": int(number)}
    assert folder == str(workspace / "inner")
    assert "hunter2" not in outcome.output
    assert not [one for one in variables if one.startswith(("PYTHON", "LD_", "BASH_"))]


def test_only_the_three_usual_descriptors_are_open(tmp_path: Path, workspace: Path, tier: int) -> None:
    kept = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(kept, True)
    try:
        outcome = run(
            confined(workspace),
            a_host(tmp_path),
            "cd /proc/$$/fd && for one in *; do [ -L $one ] && echo $one; done",
            tier,
        )
    finally:
        os.close(kept)
    assert outcome.output.split() == ["0", "1", "2"]


def test_signals_are_as_a_shell_expects_them(tmp_path: Path, workspace: Path, tier: int) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        outcome = run(confined(workspace), a_host(tmp_path), "grep -E '^Sig(Blk|Ign)' /proc/$$/status", tier)
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    # bash itself holds SIGCHLD back while it waits.
    assert [int(line.split()[1], 16) & ~(1 << signal.SIGCHLD - 1) for line in outcome.output.splitlines()] == [0, 0]


def test_it_cannot_become_somebody_else_and_leaves_no_core(tmp_path: Path, workspace: Path, tier: int) -> None:
    outcome = run(
        confined(workspace), a_host(tmp_path), "grep NoNewPrivs /proc/self/status; ulimit -c; ulimit -Hc", tier
    )
    assert outcome.output.split() == ["NoNewPrivs:", "1", "0", "0"]


def test_a_file_grows_to_its_limit_only(tmp_path: Path, workspace: Path, tier: int) -> None:
    confinement = confined(workspace, limits=ResourceLimits(file_size=1 << 20))
    outcome = run(confinement, a_host(tmp_path), "head -c 2M /dev/zero > big", tier)
    assert outcome.exit_code == 128 + signal.SIGXFSZ
    assert (workspace / "big").stat().st_size == 1 << 20


@pytest.mark.skipif(os.getuid() == 0, reason="root is not bound by it")
def test_there_are_not_more_processes_than_the_limit(tmp_path: Path, workspace: Path, tier: int) -> None:
    confinement = confined(workspace, limits=ResourceLimits(processes=5))
    forks = "import os, time\nfor _ in range(100): os.fork() or time.sleep(99)"
    outcome = run(confinement, a_host(tmp_path), f"{PYTHON} -ISc '{forks}'", tier)
    assert "BlockingIOError" in outcome.output


def test_a_folder_that_is_gone_is_told(tmp_path: Path, workspace: Path, tier: int) -> None:
    outcome = run(confined(workspace, cwd=f"{workspace}/gone"), a_host(tmp_path), "echo ran", tier)
    assert outcome.output == f"supervisor: {workspace}/gone: No such file or directory\n"
    assert outcome.status == []
    assert outcome.exit_code == 1


@pytest.mark.parametrize("program", [b"/no/such/bash", b"/etc/passwd", b"/"])
def test_a_bash_that_does_not_start_is_told(tmp_path: Path, workspace: Path, tier: int, program: bytes) -> None:
    with launch_supervised(confined(workspace), a_host(tmp_path), "echo ran", tier) as launch:
        plan = SupervisorPlan.read(os.dup(launch.inherited[0]))
        plan.arguments[0] = program
        written = os.memfd_create("plan")
        write_memory_file(written, plan.encode())
        os.dup2(written, launch.inherited[0])
        os.close(written)
        with start(launch) as process:
            told = process.communicate()[0].decode()
        assert re.fullmatch(f"supervisor: {program.decode()}: (No such file or directory|Permission denied)\n", told)
        assert [list(document) for document in status_of(launch)] == [["child-pid"]]


@pytest.mark.parametrize(("text", "code"), [("x" * 200_000, "LIMIT_EXCEEDED"), ("echo \0", "INVALID_ARGUMENT")])
def test_a_text_that_no_shell_can_take_is_refused(
    tmp_path: Path, workspace: Path, tier: int, text: str, code: str
) -> None:
    with pytest.raises(ToolError) as refusal:
        launch_supervised(confined(workspace), a_host(tmp_path), text, tier)
    assert refusal.value.code == code


def test_bytes_that_are_no_text_reach_the_command(tmp_path: Path, workspace: Path, tier: int) -> None:
    outcome = run(confined(workspace), a_host(tmp_path), "printf %s '\udcff\u20ac' | od -An -tx1", tier)
    assert outcome.output.split() == ["ff", "e2", "82", "ac"]


def test_closing_a_launch_that_never_started_leaves_nothing(tmp_path: Path, workspace: Path, tier: int) -> None:
    before = os.listdir("/proc/self/fd")
    launch = launch_supervised(confined(workspace), a_host(tmp_path), "true", tier)
    launch.close()
    assert os.listdir("/proc/self/fd") == before


def test_a_launch_that_fails_leaves_no_descriptor(
    tmp_path: Path, workspace: Path, tier: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(ToolError) as refusal:
        launch_supervised(confined(workspace), a_host(tmp_path), "true", tier)
    assert refusal.value.code == "UNAVAILABLE"
    assert os.listdir("/proc/self/fd") == before


def test_the_supervisor_loads_little(tmp_path: Path, workspace: Path, tier: int) -> None:
    with launch_supervised(confined(workspace), a_host(tmp_path), "true", tier) as launch:
        python, *rest = launch.argv
        told = subprocess.run(
            [python, "-X", "importtime", *rest],
            pass_fds=launch.inherited,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    loaded = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert {"ctypes", "handrail.sandbox.supervisor.program"} <= loaded
    assert not loaded & {"msgspec", "typing", "enum", "re", "json", "signal", "collections", "subprocess", "site"}
