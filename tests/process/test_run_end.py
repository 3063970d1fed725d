"""A command ends when it must, with everything it started, and no other process is touched."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from process_launches import MakeLaunch, Run, comes_true, confined, launched, left_of, running, supervised

from handrail.process.result import CommandResult
from in_time import cut_short

STUBBORN = "trap '' TERM HUP INT; (trap '' TERM; exec sleep {0}) & (sleep {0} & sleep {0}) & echo ready; sleep {0}; :"
SCATTERED = "setsid -f sleep {0}; setsid bash -c '(setsid sleep {0} &) ; sleep {0}' & " + STUBBORN


class Ready:
    """Waits for the command to print `ready`."""

    def __init__(self) -> None:
        self.seen = threading.Event()

    def __call__(self, data: bytes) -> None:
        if b"ready" in data:
            self.seen.set()


def test_a_timeout_ends_everything(make: MakeLaunch, run: Run, mark: str) -> None:
    def run_for(milliseconds: int) -> CommandResult:
        return run(make(STUBBORN.format(mark)), limits={"seconds": milliseconds / 1000})

    ran, _ = cut_short(run_for, 300, lambda ran: ran.output.head)
    assert (ran.ending, ran.exit_code, ran.limits, ran.warnings) == ("timeout", None, ("time",), ())
    assert ran.output.head == b"ready\n"
    assert left_of(make, mark) == []


def test_a_cancellation_ends_everything(make: MakeLaunch, run: Run, mark: str) -> None:
    ready = Ready()
    ran = run(make(STUBBORN.format(mark)), on_output=ready, cancelled=ready.seen.is_set)
    assert (ran.ending, ran.exit_code, ran.limits, ran.output.head) == ("cancelled", None, (), b"ready\n")
    assert left_of(make, mark) == []


def test_a_cancellation_from_another_thread_ends_everything(make: MakeLaunch, run: Run, mark: str) -> None:
    ready, stop = Ready(), threading.Event()
    other = threading.Thread(target=lambda: ready.seen.wait() and stop.set())
    other.start()
    ran = run(make(STUBBORN.format(mark)), on_output=ready, cancelled=stop.is_set)
    other.join()
    assert ran.ending == "cancelled"
    assert left_of(make, mark) == []


def test_a_namespace_leaves_nobody_wherever_they_went(in_namespace: MakeLaunch, run: Run, mark: str) -> None:
    ready = Ready()
    assert run(in_namespace(SCATTERED.format(mark)), on_output=ready, cancelled=ready.seen.is_set).ending == "cancelled"
    assert running(mark) == []
    assert run(in_namespace(f"setsid -f sleep {mark}; (setsid sleep {mark} &); exit 2")).exit_code == 2
    assert running(mark) == []


def test_a_flood_is_no_reason_not_to_end(make: MakeLaunch, run: Run, tmp_path: Path) -> None:
    def run_for(milliseconds: int) -> CommandResult:
        return run(make("yes"), limits={"seconds": milliseconds / 1000, "output": 100_000, "spilled": 0})

    ran, _ = cut_short(run_for, 300, lambda ran: ran.output.total > 1 << 20)
    assert (ran.ending, ran.limits) == ("timeout", ("time", "output"))
    assert (len(ran.output.head) + len(ran.output.tail), ran.output.total > 1 << 20) == (100_000, True)


def test_a_cancellation_before_anything_happened_ends_it(
    make: MakeLaunch, run: Run, mark: str, count: Callable[[int], int]
) -> None:
    for _ in range(count(100)):
        assert run(make(f"sleep {mark}"), cancelled=lambda: True).ending == "cancelled"
        assert left_of(make, mark) == []


def test_a_program_that_never_says_what_it_started_is_killed(run: Run, mark: str) -> None:
    for own_processes in (True, False):
        launch = launched(lambda status, lifeline: ("/bin/sleep", mark), own_processes=own_processes)
        assert run(launch, cancelled=lambda: True).ending == "cancelled"
        assert running(mark) == []


def test_a_sandbox_that_somebody_kills_takes_the_command_with_it(in_namespace: MakeLaunch, run: Run, mark: str) -> None:
    def kill_the_sandbox(data: bytes) -> None:
        if b"ready" in data:
            os.kill(min(running(mark)), signal.SIGKILL)

    ran = run(in_namespace(SCATTERED.format(mark)), on_output=kill_the_sandbox)
    assert (ran.ending, ran.exit_code) == ("exit", 128 + signal.SIGKILL)
    assert running(mark) == []


def test_a_supervisor_that_somebody_kills_takes_the_command_with_it(run: Run, mark: str) -> None:
    def kill_the_supervisor(data: bytes) -> None:
        if b"ready" in data:
            os.kill(min(running(mark)), signal.SIGKILL)

    ran = run(supervised(f"echo ready; exec sleep {mark}"), on_output=kill_the_supervisor)
    assert (ran.ending, ran.exit_code) == ("exit", 128 + signal.SIGKILL)
    assert comes_true(lambda: running(mark) == [])


@pytest.mark.parametrize("when", ["cancelled", "on_output"])
def test_what_a_callback_raises_goes_on_and_ends_the_command(
    make: MakeLaunch, run: Run, mark: str, when: str, tmp_path: Path
) -> None:
    told: list[bytes] = []

    def tell(data: bytes) -> None:
        told.append(data)
        if when == "on_output" and len(b"".join(told)) > 100_000:
            raise LookupError(when)

    def cancelled() -> bool:
        if len(b"".join(told)) > 100_000:
            raise LookupError(when)
        return False

    with pytest.raises(LookupError, match=when):
        run(
            make(f"sleep {mark} & head -c 200000 /dev/zero; sleep {mark}"),
            on_output=tell,
            cancelled=cancelled,
            limits={"output": 10_000},
        )
    assert left_of(make, mark) == []
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_not_of_the_tree_is_not_touched(run: Run, mark: str) -> None:
    with subprocess.Popen(["/bin/sleep", mark], start_new_session=True) as stranger:

        def argv(status: int, lifeline: int) -> tuple[str, ...]:
            return (
                "/bin/bash",
                "-c",
                f"echo '{{\"child-pid\": {stranger.pid}}}' >&{status}; echo ready; read -t 60 <&{lifeline}",
            )

        ready = Ready()
        launch = launched(argv, own_processes=True)
        assert run(launch, on_output=ready, cancelled=ready.seen.is_set).ending == "cancelled"
        untouched = stranger.poll() is None
        stranger.kill()
    assert untouched


@pytest.mark.parametrize("missing", ["ENOSYS", "EMFILE"])
def test_a_kernel_without_descriptors_of_processes_will_do(
    make: MakeLaunch, run: Run, mark: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: int, flags: int = 0) -> int:
        raise OSError(getattr(__import__("errno"), missing), missing)

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert run(make(f"sleep {mark} & exit 4")).exit_code == 4
    assert left_of(make, mark) == []
    ready = Ready()
    assert run(make(STUBBORN.format(mark)), on_output=ready, cancelled=ready.seen.is_set).ending == "cancelled"
    assert left_of(make, mark) == []


def test_an_interrupt_ends_everything_and_goes_on(make: MakeLaunch, mark: str) -> None:
    with interrupted(make, "once", mark) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"ready\n"
        victim.send_signal(signal.SIGINT)
        assert victim.stdout.read() == b"interrupted, left: []\n"
    assert victim.returncode == 0


def test_a_runtime_that_is_killed_takes_the_namespace_with_it(in_namespace: MakeLaunch, mark: str) -> None:
    with interrupted(in_namespace, "once", mark) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"ready\n"
        victim.kill()
    assert comes_true(lambda: running(mark) == [])


def test_an_interrupt_at_any_moment_leaves_nothing(make: MakeLaunch, mark: str, count: Callable[[int], int]) -> None:
    with interrupted(make, str(count(500)), mark) as victim:
        assert victim.stdout is not None
        assert victim.stdout.read() == b"left: []\n"
    assert victim.returncode == 0


def interrupted(make: MakeLaunch, times: str, mark: str) -> "subprocess.Popen[bytes]":
    script = Path(__file__).with_name("interrupted.py")
    kind = "confined" if make is confined else "supervised"
    environment = {**os.environ, "MARK": mark, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, script, kind, times], stdout=subprocess.PIPE, env=environment)
