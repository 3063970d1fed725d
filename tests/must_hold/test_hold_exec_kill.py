"""kill -9 at any moment of a command: one result that says the truth, one audit line, and nothing is left of it."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import exec_victim
from kills import kills

from handrail import Handrail
from handrail.protocol.events import Event, ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.records import AuditRecord
from handrail.settings import Settings
from handrail.state import StoredState
from handrail.store.audit import decode_record

KILLS = 150


def test_a_killed_runtime_leaves_one_result_for_each_command_and_nothing_else(
    tmp_path: Path, workspace: Path, count: Callable[[int], int], note: Callable[[str], None]
) -> None:
    state, draw, known = tmp_path / "state", random.Random(6), dict[str, int]()
    mark = f"54321.{os.getpid():08}"
    cut_off: Counter[str] = Counter()
    for _ in kills(count(KILLS), lambda: cut_off["looking"] and cut_off["writing"]):
        session = f"session-{draw.randrange(3)}"
        returned = killed(workspace, state, session, mark, draw)

        with Handrail(workspace, session=session, state_dir=state, settings=Settings()) as rail:
            assert is_gone(mark)
            events = [event for event in rail.events(known.get(session, 0)) if isinstance(event, Event)]
            assert rail.exec("echo lives").content == "lives\n"
            known[session] = max(event.seq for event in rail.events() if isinstance(event, Event))
        commands = {event.tool_call_id: event.args["command"] for event in events if isinstance(event, ToolCallStart)}
        results = [event.result for event in events if isinstance(event, ToolCallEnd | ToolCallError)]
        codes = {result.tool_call_id: result.error.code if result.error else "ok" for result in results}

        # Every call that began has exactly one result; what returned is what is remembered.
        assert sorted(commands) == sorted(result.tool_call_id for result in results)
        assert returned.items() <= codes.items()
        interrupted = [result for result in results if codes[result.tool_call_id] == "INTERRUPTED"]
        assert len(interrupted) <= 1
        for result in interrupted:
            only_looked = commands[result.tool_call_id] in {command.format(mark) for command in exec_victim.LOOKING}
            # What a layer held was dropped with it, unless it was being kept: then that was done, or taken back.
            nothing, made = (words in result.content for words in ("Nothing was changed.", "Its change was applied:"))
            assert nothing if only_looked else nothing != made
            cut_off["looking" if only_looked else "writing"] += 1

        # One audit record each, in one chain; no output of the dead is left beside what is kept.
        assert StoredState(str(state)).verify().problems == ()
        told = [record.tool_call_id for record in records(state)]
        assert len(told) == len(set(told))
        assert set(codes) <= set(told)
        assert [path for path in (state / "printed").rglob("*") if path.is_file()] == []
    note(f"cut off: {dict(cut_off)}")
    assert cut_off["looking"]
    assert cut_off["writing"]


def killed(workspace: Path, state: Path, session: str, mark: str, draw: random.Random) -> dict[str, str]:
    """Starts a victim and kills it a drawn time after it began a drawn call; the calls that had returned."""
    command = [sys.executable, exec_victim.__file__, workspace, state, session, str(draw.randrange(10**9)), mark]
    calls, seconds = draw.randrange(1, 4), draw.choice((0.005, 0.03, 0.12)) * draw.random()
    lines: list[bytes] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        while calls:
            lines.append(victim.stdout.readline())
            calls -= lines[-1].startswith(b"calling")
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            pass
        os.kill(victim.pid, signal.SIGKILL)
        lines += victim.stdout.read().splitlines(keepends=True)
    # Killed while it starts a command, it leaves a copy of itself that is not bubblewrap yet, and holds its locks.
    assert is_gone(f"{exec_victim.__file__}\0{workspace}\0")
    parts = [line.decode().split() for line in lines if line.endswith(b"\n") and not line.startswith(b"calling")]
    return dict(parts)


def is_gone(word: str) -> bool:
    """Whether soon no process has that in its command line."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        if not any(word.encode() in words(entry) for entry in Path("/proc").iterdir() if entry.name.isdecimal()):
            return True
        time.sleep(0.01)
    return False


def words(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


def records(state: Path) -> list[AuditRecord]:
    with (state / "audit.jsonl").open("rb") as lines:
        return [found[0] for line in lines if (found := decode_record(line))]
