"""Whatever a command starts ends with it, with its lifeline, and with the runtime, however it tries to get away."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from supervising import ENDED_WITHIN, a_host, confined, ends, processes_with, run, start, status_of

from handrail.kernel.landlock import read_abi_version
from handrail.sandbox.landlock import launch_supervised
from handrail.sandbox.supervisor.program import remove_abandoned

VICTIM = Path(__file__).with_name("supervised_victim.py")
TIERS = [pytest.param(1, marks=pytest.mark.skipif(not read_abi_version(), reason="no Landlock")), 0]

# Each ends with `ready`, once everything that it starts has its own name.
_WAIT = "until [ -e up ]; do :; done; echo ready"
TREES = {
    "own session": f"setsid bash -c 'touch up; exec -a MARK sleep 300' & {_WAIT}; wait",
    "orphan": f"(setsid bash -c 'touch up; exec -a MARK sleep 300' &) ; {_WAIT}; exec -a MARK sleep 300",
    "deaf": f"trap '' TERM HUP INT QUIT; (trap '' TERM; touch up; while :; do sleep 1; done) & {_WAIT}; : MARK; wait",
    "stopped": f"bash -c 'touch up; kill -STOP $$; : MARK' & {_WAIT}; wait",
    "parent gone": f"(bash -c 'touch up; exec -a MARK sleep 300' & exec -a MARK sleep 300 &) & {_WAIT}; wait; sleep 99",
    "crowd": "for i in {1..150}; do bash -c 'exec -a MARK sleep 300' & done; echo ready; wait",
    # A process that has always just been replaced by another one: whoever kills what it has seen comes too late.
    "hopping": "hop() { (hop &); }; for i in {1..8}; do (setsid -f true; hop) & done; echo ready; sleep 300; : MARK",
    "closed": f"exec 0<&- ; setsid bash -c 'exec >/dev/null 2>&1; touch up; exec -a MARK sleep 300' & {_WAIT}; wait",
}


@pytest.fixture
def mark() -> str:
    return f"tree-{uuid4()}"


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("tree", TREES)
def test_nothing_is_left_when_the_lifeline_closes(
    tmp_path: Path, workspace: Path, mark: str, tree: str, tier: int
) -> None:
    text = TREES[tree].replace("MARK", mark)
    with launch_supervised(confined(workspace), a_host(tmp_path), text, tier) as launch, start(launch) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert processes_with(mark)
        launch.drop_lifeline()
        process.wait(ENDED_WITHIN)
        assert processes_with(mark) == []
        assert [list(document) for document in status_of(launch)] == [["child-pid"]]


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("tree", TREES)
def test_nothing_is_left_when_the_runtime_is_killed(
    tmp_path: Path, workspace: Path, mark: str, tree: str, tier: int
) -> None:
    text = TREES[tree].replace("MARK", mark)
    arguments = [sys.executable, VICTIM, tmp_path, str(tier), text]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        supervisor = os.pidfd_open(int(victim.stdout.readline()))
        assert processes_with(mark)
        victim.kill()
    try:
        assert ends(supervisor)
    finally:
        os.close(supervisor)
    assert processes_with(mark) == []


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("way", ["exit 3", "kill -9 $$", "exec sh -c 'exit 3'"])
def test_what_is_in_the_background_ends_with_the_command(
    tmp_path: Path, workspace: Path, mark: str, way: str, tier: int
) -> None:
    text = f"(setsid bash -c 'touch up; exec -a {mark} sleep 300' &); until [ -e up ]; do :; done; {way}"
    outcome = run(confined(workspace), a_host(tmp_path), text, tier)
    assert outcome.exit_code in {3, 137}
    assert outcome.status[-1] == {"exit-code": outcome.exit_code}
    assert processes_with(mark) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_supervisor_that_is_asked_to_end_ends_everything(
    tmp_path: Path, workspace: Path, mark: str, number: signal.Signals
) -> None:
    with launch_supervised(confined(workspace), a_host(tmp_path), TREES["orphan"].replace("MARK", mark), 0) as launch:
        with start(launch) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(number)
            process.wait(ENDED_WITHIN)
        assert processes_with(mark) == []


@pytest.mark.parametrize("tier", TIERS)
def test_the_command_itself_dies_with_a_supervisor_that_is_killed(
    tmp_path: Path, workspace: Path, mark: str, tier: int
) -> None:
    text = f'echo "$TMPDIR"; exec -a {mark} sleep 300'
    with launch_supervised(confined(workspace), a_host(tmp_path), text, tier) as launch, start(launch) as process:
        assert process.stdout is not None
        private = Path(process.stdout.readline().decode()).parent
        handle = os.pidfd_open(json.loads(os.read(launch.status, 4096))["child-pid"])
        process.kill()
        try:
            assert ends(handle)
        finally:
            os.close(handle)
    if tier == 1:
        _is_removed_in_time(private)


def _is_removed_in_time(private: Path) -> None:
    remove_abandoned(str(private.parent))
    assert private.exists()  # a supervisor may be about to lock it
    os.utime(private, (0, 0))
    holder = os.open(private, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    remove_abandoned(str(private.parent))
    assert private.exists()
    os.close(holder)
    remove_abandoned(str(private.parent))
    assert not private.exists()
