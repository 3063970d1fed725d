"""A command that waits in its sandbox begins when it is let, and never otherwise."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from process_launches import Run, comes_true, running, sandboxed

from handrail.sandbox.profile import ResourceLimits

_VICTIM = """
import sys
from pathlib import Path
from process_launches import sandboxed
from handrail.process.run import run_launch
from handrail.sandbox.profile import ResourceLimits
folder = Path(sys.argv[1])
limits = ResourceLimits(seconds=60.0)

def confirm():
    print("waits", flush=True)
    sys.stdin.read()

launch = sandboxed(2, folder)(sys.argv[2], limits, waits=True)
assert launch.held
run_launch(launch, limits=limits, cancelled=lambda: False, spill_folder=str(folder), confirm=confirm)
"""


class NotYetError(Exception):
    """It may not begin."""


@pytest.mark.parametrize("tier", [2, 1, 0])
def test_a_command_sees_what_was_there_when_it_was_let_begin(tier: int, run: Run, tmp_path: Path) -> None:
    launch = sandboxed(tier, tmp_path)("cat agreed", ResourceLimits(), waits=True)
    assert launch.held == (tier == 2)
    agreed = tmp_path / "workspace" / "agreed"
    ran = run(launch, confirm=lambda: agreed.write_text("yes") and None)
    assert (ran.exit_code, ran.output.head) == (0, b"yes")


@pytest.mark.parametrize("tier", [2, 1, 0])
def test_a_command_that_is_not_let_begin_does_nothing_and_leaves_nothing(
    tier: int, run: Run, tmp_path: Path, mark: str
) -> None:
    launch = sandboxed(tier, tmp_path)(f"touch begun; sleep {mark}", ResourceLimits(), waits=True)

    def refuse() -> None:
        raise NotYetError

    with pytest.raises(NotYetError):
        run(launch, confirm=refuse)
    assert not (tmp_path / "workspace" / "begun").exists()
    assert running(mark) == []


def test_a_command_that_is_not_let_begin_does_nothing_even_without_its_guard(run: Run, tmp_path: Path) -> None:
    def refuse() -> None:
        raise NotYetError

    for _ in range(5):
        launch = sandboxed(2, tmp_path)("touch begun", ResourceLimits(), waits=True)
        launch.environment = {name: value for name, value in launch.environment.items() if name != "BASH_ENV"}
        with pytest.raises(NotYetError):
            run(launch, confirm=refuse)
    assert not (tmp_path / "workspace" / "begun").exists()


def test_who_is_killed_before_letting_it_begin_leaves_nothing_that_begins(tmp_path: Path, mark: str) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(5):
        victim = subprocess.Popen(
            [sys.executable, "-c", _VICTIM, str(tmp_path), f"touch begun; sleep {mark}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
        )
        assert victim.stdin is not None
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"waits\n"
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        victim.stdin.close()
        victim.stdout.close()
        assert comes_true(lambda: running(mark) == [])
    assert not (tmp_path / "workspace" / "begun").exists()


def test_a_sandbox_that_cannot_be_made_is_told_of_though_it_was_let_begin(run: Run, tmp_path: Path) -> None:
    launch = sandboxed(2, tmp_path)("true", ResourceLimits(), waits=True)
    launch.argv = ("/bin/false",)
    assert run(launch, confirm=lambda: None).ending == "failed"


def test_a_launch_that_waits_need_not_be_asked_about(run: Run, tmp_path: Path) -> None:
    assert run(sandboxed(2, tmp_path)("exit 3", ResourceLimits(), waits=True)).exit_code == 3
