"""kill -9 at any moment: every file is old or new, and everything that was reported as done is remembered."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from handrail import Handrail
from handrail.protocol.events import Event, ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.records import AuditRecord
from handrail.settings import Settings
from handrail.state import StoredState
from handrail.store.audit import decode_record

KILLS = 50
VICTIM = Path(__file__).with_name("victim.py")


class Death(msgspec.Struct):
    """What a victim had reported when it was killed."""

    returned: dict[str, tuple[str, str]]
    """Calls that had returned, each with how it ended and the path it wrote."""


def kill_after(workspace: Path, state: Path, session: str, draw: random.Random) -> Death:
    """Starts a writer and kills it after a drawn number of reports and, from the last of them, a drawn time."""
    command = [sys.executable, VICTIM, workspace, state, session, str(draw.randrange(10**9))]
    reports, microseconds = draw.randrange(1, 30), draw.randrange(0, 4_000)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        lines = [victim.stdout.readline() for _ in range(reports)]
        until = time.perf_counter() + microseconds / 1e6
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            pass
        os.kill(victim.pid, signal.SIGKILL)
        lines += victim.stdout.read().splitlines(keepends=True)
    assert victim.returncode == -signal.SIGKILL
    parts = [line.decode().split() for line in lines if line.endswith(b"\n")]
    return Death({call: (code, path) for call, code, path in parts})


def records_of(state: Path) -> list[AuditRecord]:
    with (state / "audit.jsonl").open("rb") as lines:
        return [found[0] for line in lines if (found := decode_record(line))]


def files_of(workspace: Path) -> dict[str, bytes]:
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


def test_a_killed_writer_loses_nothing_that_it_reported(
    tmp_path: Path, workspace: Path, count: Callable[[int], int]
) -> None:
    state, draw = tmp_path / "state", random.Random(20)
    expected: dict[str, bytes] = {}
    known: dict[str, int] = {}
    everything: dict[str, dict[str, str]] = {}
    reported, cut_off, left = 0, 0, 0
    for _ in range(count(KILLS)):
        session = f"session-{draw.randrange(3)}"
        death = kill_after(workspace, state, session, draw)
        reported += len(death.returned)
        left += sum(".handrail-" in name for name in files_of(workspace))

        with Handrail(workspace, session=session, state_dir=state, settings=Settings()) as rail:
            events = [event for event in rail.events(known.get(session, 0)) if isinstance(event, Event)]
        known[session] = events[-1].seq
        started = {event.tool_call_id: event for event in events if isinstance(event, ToolCallStart)}
        results = [event.result for event in events if isinstance(event, ToolCallEnd | ToolCallError)]
        codes = {result.tool_call_id: result.error.code if result.error else "ok" for result in results}

        # Every call that began has exactly one result, every call that returned the result that it returned.
        assert sorted(started) == sorted(result.tool_call_id for result in results)
        assert {call: codes[call] for call in death.returned} == {
            call: code for call, (code, _) in death.returned.items()
        }

        # Every file is the old one or the new one, and nothing half-made is left.
        writes = [event for event in started.values() if event.tool_call_name == "write"]
        for event in writes:
            if codes[event.tool_call_id] == "ok":
                expected[event.args["path"]] = event.args["content"].encode()
        interrupted = [event for event in writes if codes[event.tool_call_id] == "INTERRUPTED"]
        possible = {event.args["path"]: event.args["content"].encode() for event in interrupted}
        now = files_of(workspace)
        assert len(interrupted) <= 1
        assert expected.keys() <= now.keys() <= expected.keys() | possible.keys()
        assert all(data in {expected.get(path), possible.get(path)} for path, data in now.items())
        assert set(codes.values()) <= {"ok", "INTERRUPTED"}
        expected = now
        cut_off += len(interrupted)

        # One audit record each, saying the same, in one chain.
        assert StoredState(str(state)).verify().problems == ()
        records = [record for record in records_of(state) if record.session_id == session]
        told = [(record.tool_call_id, record.error_code or "ok") for record in records]
        everything[session] = everything.get(session, {}) | codes
        assert sorted(told) == sorted(everything[session].items())
    print(f"\nkills: {count(KILLS)}, calls reported {reported}, cut off {cut_off}, unfinished files {left}")
