"""The memory and the processes of a whole tree are watched, cheaply and without false alarm."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from process_launches import MakeLaunch, Run, left_of, running

from handrail.process.usage import UsageMonitor, count_bytes_below, sample_descendants
from handrail.sandbox.profile import MEGABYTE, ResourceLimits

FORKS = """
import os, signal
kept = b"x" * (64 << 20)
for _ in range(4):
    if not os.fork():
        signal.pause()
print("ready", flush=True)
signal.pause()
"""


def test_a_tree_that_takes_too_much_memory_is_ended_and_the_limit_named(make: MakeLaunch, run: Run, mark: str) -> None:
    hungry = f"{sys.executable} -c 'import time; kept = b\"x\" * (80 << 20); time.sleep({mark})'"
    ran = run(make(f"{hungry} & {hungry}; :"), limits={"memory": 120 * MEGABYTE})
    assert (ran.ending, ran.exit_code, ran.limits, ran.warnings) == ("memory", None, ("memory",), ())
    assert left_of(make, mark) == []


def test_a_tree_of_too_many_processes_is_ended_and_the_limit_named(make: MakeLaunch, run: Run, mark: str) -> None:
    ran = run(make(f"for one in {{1..30}}; do sleep {mark} & done; wait"), limits={"processes": 20})
    assert (ran.ending, ran.exit_code, ran.limits) == ("processes", None, ("processes",))
    assert left_of(make, mark) == []


def test_a_tree_within_its_limits_goes_on(make: MakeLaunch, run: Run, mark: str) -> None:
    looks: list[bytes] = []

    def enough() -> bool:  # asked every 50 ms: the tree has been looked at several times by then
        looks.append(b"")
        return len(looks) > 10

    limits = {"processes": 30, "memory": 120 * MEGABYTE}
    ran = run(make(f"for one in {{1..20}}; do sleep {mark} & done; wait"), limits=limits, cancelled=enough)
    assert (ran.ending, ran.limits) == ("cancelled", ())
    assert left_of(make, mark) == []


@pytest.fixture
def forked() -> Iterator[int]:
    """A process with 64 MB that four children share."""
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        children = sample_descendants(parent.pid)._processes
        yield parent.pid
        for process in (parent.pid, *children):
            os.kill(process, 9)


def test_what_a_fork_shares_is_counted_once(forked: int) -> None:
    census = sample_descendants(forked)
    assert census.count == 4
    assert census.memory > 4 * 60 * MEGABYTE
    assert census.exact_memory() < 2 * 64 * MEGABYTE
    watch = UsageMonitor(ResourceLimits(memory=128 * MEGABYTE), program=forked, own_processes=False)
    assert watch.look(None) is None
    watch = UsageMonitor(ResourceLimits(memory=16 * MEGABYTE), program=forked, own_processes=False)
    assert watch.look(None) == "memory"


def test_a_look_is_the_rarer_the_longer_it_takes(forked: int) -> None:
    times = iter([0.0, 1.0, 1.001, 2.0, 2.5])
    watch = UsageMonitor(ResourceLimits(), program=forked, own_processes=False, clock=lambda: next(times))
    assert watch.next_look == pytest.approx(0.1)
    watch.look(None)
    assert watch.next_look == pytest.approx(1.101)
    watch.look(None)
    assert watch.next_look == pytest.approx(2.5 + 2)


def test_looks_are_closer_near_a_limit(forked: int) -> None:
    watch = UsageMonitor(ResourceLimits(processes=7), program=forked, own_processes=False, clock=lambda: 5.0)
    assert watch.look(None) is None
    assert watch.next_look == pytest.approx(5.02)


def test_our_own_processes_are_never_taken_for_the_sandbox(run: Run) -> None:
    watch = UsageMonitor(ResourceLimits(processes=0, memory=0), program=os.getpid(), own_processes=True)
    assert watch.look(os.getpid()) is None  # a sandbox that is not complete still shows the /proc that we see
    assert watch.look(None) is None
    assert watch.look(2**22 + 1) is None
    watch.close()


def test_a_sandbox_that_goes_meanwhile_counts_nothing(in_namespace: MakeLaunch, run: Run, mark: str) -> None:
    kept: list[UsageMonitor] = []

    def look_inside(data: bytes) -> None:
        if b"ready" in data:
            watch = UsageMonitor(ResourceLimits(processes=2), program=0, own_processes=True)
            first = min(set(running(mark)) - {min(running(mark))})
            assert watch.look(first) is None  # bash and its child
            watch._limits = ResourceLimits(processes=1)
            assert watch.look(first) == "processes"
            kept.append(watch)

    run(
        in_namespace(f"sleep {mark} & echo ready; exec sleep {mark}"),
        on_output=look_inside,
        cancelled=lambda: bool(kept),
    )
    (watch,) = kept
    assert watch.look(None) is None
    watch.close()


def test_bytes_are_counted_once_for_every_file_and_sparse_ones_as_they_lie_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(os.urandom(MEGABYTE))
    os.link(tmp_path / "a" / "b" / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 8 * MEGABYTE)
    most = 64 * MEGABYTE
    assert MEGABYTE < count_bytes_below([str(tmp_path)], most) < 1.2 * MEGABYTE
    assert 9 * MEGABYTE < count_bytes_below([str(tmp_path)], most, whole=True) < 9.2 * MEGABYTE
    assert count_bytes_below([str(tmp_path / "missing")], most) == 0
    assert count_bytes_below([str(tmp_path)], 1000) > 1000


def test_a_tree_that_writes_too_much_is_over_its_limit(forked: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(MEGABYTE))
    limits = ResourceLimits(disk=MEGABYTE - 1, uppers=(str(tmp_path),))
    assert UsageMonitor(limits, program=forked, own_processes=False).look(None) == "disk"
