"""kill -9 at any moment: every file is old or new, and everything that was reported as done is remembered."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
from crowd import is_whole

from handrail import Handrail
from handrail.protocol.event import ToolCallEnd, ToolCallError, ToolCallStart
from handrail.settings import Settings
from handrail.store.audit import Record, decode_record
from handrail.store.folder import StateFolder
from handrail.store.verify import verify

KILLS = 50
VICTIM = Path(__file__).with_name("victim.py")


class Death(msgspec.Struct):
    """What a victim had reported when it was killed."""

    done: dict[str, str]
    """Calls that had returned, with the path each wrote."""


def kill_after(workspace: Path, state: Path, session: str, draw: random.Random) -> Death:
    """Starts a writer and kills it after a drawn number of reports and, from the last of them, a drawn time."""
    command = [sys.executable, VICTIM, workspace, state, session, str(draw.randrange(10**9))]
    reports, microseconds = draw.randrange(1, 30), draw.randrange(0, 4_000)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        lines = [victim.stdout.readline() for _ in range(reports)]
        until = time.perf_counter() + microseconds / 1e6
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            select.select([], [], [], 0)
        os.kill(victim.pid, signal.SIGKILL)
        lines += victim.stdout.read().splitlines(keepends=True)
    assert victim.returncode == -signal.SIGKILL
    parts = [line.split() for line in lines if line.endswith(b"\n")]
    assert all(ok == b"True" for _, ok, _ in parts)
    return Death({call.decode(): path.decode() for call, _, path in parts})


def records_of(state: Path) -> list[Record]:
    with (state / "audit.jsonl").open("rb") as lines:
        return [found[0] for line in lines if (found := decode_record(line))]


def files_of(workspace: Path) -> dict[str, bytes]:
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


def test_a_killed_writer_loses_nothing_that_it_reported(
    tmp_path: Path, workspace: Path, count: Callable[[int], int]
) -> None:
    state, draw = tmp_path / "state", random.Random(20)
    reported: set[str] = set()
    interrupted: set[str] = set()
    left = 0
    for number in range(count(KILLS)):
        session = f"session-{draw.randrange(3)}"
        old = files_of(workspace)
        death = kill_after(workspace, state, session, draw)
        reported |= death.done.keys()
        left += sum(".handrail-" in name for name in files_of(workspace))

        with Handrail(workspace, session=session, state_dir=state, settings=Settings()) as rail:
            events = list(rail.events())
        now = files_of(workspace)

        # Every file is whole, nothing half-made is left, and nothing that was there is gone.
        assert [name for name in now if ".handrail-" in name] == []
        assert all(is_whole(data.decode()) for data in now.values())
        assert old.keys() | set(death.done.values()) <= now.keys()

        # Every call that returned has its result; every call that began has exactly one.
        started = {event.tool_call_id: event for event in events if isinstance(event, ToolCallStart)}
        results = [event.result for event in events if isinstance(event, ToolCallEnd | ToolCallError)]
        assert Counter(result.tool_call_id for result in results) == Counter(started)
        by_id = {result.tool_call_id: result for result in results}
        assert all(by_id[call].ok for call in death.done)

        # The last file that a finished or interrupted call wrote is its content, or the one before it.
        cut_off = {call for call, result in by_id.items() if not result.ok}
        assert {by_id[call].error.code for call in cut_off} <= {"INTERRUPTED"}  # type: ignore[union-attr]
        interrupted |= cut_off

        # One audit record each, saying the same, in one chain.
        verification = verify(StateFolder(str(state)))
        assert verification.problems == ()
        records = [record for record in records_of(state) if record.session_id == session]
        assert {record.tool_call_id: record.error_code for record in records} == {
            call: result.error.code if result.error else None for call, result in by_id.items()
        }
        assert len(records) == len(by_id)
        assert number < 1 or len(interrupted) <= number + 1, "at most one call is cut off by one kill"
    print(f"\nkills: {count(KILLS)}, calls reported {len(reported)}, cut off {len(interrupted)}, unfinished files {left}")
