"""What a runtime that was killed leaves of a command is found and ended, and nothing else is."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from process_launches import comes_true, running, sandboxed

from handrail.process.run import run_launch
from handrail.process.tree import kill_orphans
from handrail.sandbox.profile import ResourceLimits

Start = Callable[..., "subprocess.Popen[bytes]"]
WORDS = ("--unshare-all", "--unshare-user", "--bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--")
OURS = {"BASH_ENV": "/proc/self/fd/99"}


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts commands in sandboxes that do not die with their outer process, as each of ours is for a moment."""
    started: list[subprocess.Popen[bytes]] = []

    def go(mark: str, first: dict[str, str]) -> "subprocess.Popen[bytes]":
        words = ["bwrap", *WORDS, "bash", "-c", f"sleep {mark} & wait"]
        started.append(subprocess.Popen(words, env={**first, "PATH": os.environ["PATH"]}))
        assert comes_true(lambda: len(running(mark)) >= 3, 60.0)
        return started[-1]

    yield go
    for one in started:
        one.kill()
        one.wait()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize(
    ("first", "stays"),
    [(OURS, False), ({"HOME": "/", **OURS}, False), ({"BASH_ENV": "/etc/profile"}, True)],
    ids=["ours", "ours, reordered by the shell that mounts an overlay", "of others"],
)
def test_a_command_whose_sandbox_has_lost_its_outer_process_is_ended(
    start: Start, first: dict[str, str], stays: bool
) -> None:
    mark = f"86420.{os.getpid():08}"
    outside = start(mark, first)
    kill_orphans()
    assert running(mark), "its outer process is alive"
    outside.kill()
    outside.wait()
    kill_orphans()
    assert bool(running(mark)) == stays
    for process in running(mark):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


STARTS_SLOWLY = """
import os, signal, time
lifeline, end = os.pipe()
os.set_inheritable(lifeline, True)
os.set_inheritable(os.memfd_create("handrail"), True)
if os.fork():
    os.wait()
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(0.1)
os.execvp("sleep", ["bwrap", "600"])
"""


def test_a_sandbox_that_had_not_begun_when_its_runtime_was_killed_is_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS_SLOWLY], stdout=subprocess.PIPE) as runtime:
        assert runtime.wait() == -signal.SIGKILL
        assert kill_orphans() == 1
        assert runtime.stdout is not None
        assert runtime.stdout.read() == b"", "nothing has its other end any more"


def test_bubblewrap_is_started_with_an_environment_that_says_whose_it_is(tmp_path: Path) -> None:
    launch = sandboxed(2, tmp_path)("tr '\\0' '\\n' </proc/1/environ | head -1", ResourceLimits())
    ran = run_launch(launch, limits=ResourceLimits(), cancelled=lambda: False, spill_folder=str(tmp_path))
    assert ran.output.head.startswith(b"BASH_ENV=/proc/self/fd/")
