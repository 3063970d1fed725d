"""kill -9 at any moment of a call that is parked late: it ended and changed nothing, or it waits, or it was kept."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import late_victim
import pytest

from handrail import Done, Handrail
from handrail.protocol.events import Event, ToolCallEnd, ToolCallError
from handrail.protocol.results import ToolResult
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.state import StoredState

KILLS = 100
pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")


def test_a_killed_runtime_kept_nothing_of_a_call_that_nobody_said_yes_to(
    tmp_path: Path, workspace: Path, count: Callable[[int], int], note: Callable[[str], None]
) -> None:
    state, draw, seen = tmp_path / "state", random.Random(8), Counter[str]()
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / "gen.sh").write_text("echo $1 > .git/hooks/pre-commit; echo $1 > made")
    for number in range(count(KILLS)):
        said, mark = killed(workspace, state, str(number), draw)
        with Handrail(workspace, mode="auto", session="s", state_dir=state, settings=Settings()) as rail:
            became = settled(rail, workspace, mark, said)
            seen[became] += 1
            events = [event for event in rail.events() if isinstance(event, ToolCallEnd | ToolCallError)]
            ids = [event.tool_call_id for event in events]
            assert len(ids) == len(set(ids))
            assert rail.waiting() == ()
        assert StoredState(str(state)).verify().problems == ()
    note(f"kills: {dict(seen)}")
    if seen.total() >= KILLS:  # of few kills, all may hit the same moment
        assert {"waited", "was ended"} <= set(seen)


def settled(rail: Handrail, workspace: Path, mark: str, said: str) -> str:
    """Checks what became of the last batch, and brings it to its end."""
    results = {
        event.tool_call_id: event.result
        for event in rail.events()
        if isinstance(event, Event) and isinstance(event, ToolCallEnd | ToolCallError)
    }
    second: ToolResult[object] | None = results.get(f"{mark}-2")
    kept = changed(workspace)
    if second is not None:
        claims = second.ok or "Its change was applied:" in second.content
        assert kept == ((mark, mark) if claims else kept)
        assert claims or mark not in kept
        assert claims or (second.error is not None and "Nothing was changed." in second.content)
        rail.resume()
        return "was kept" if claims else "was ended"
    assert mark not in kept
    if rail.waiting():
        outcome = rail.answer(rail.waiting()[0].id, "once")
        assert isinstance(outcome, Done)
        assert [result.ok for result in outcome.results] == [True, True, True]
        assert changed(workspace) == (mark, mark)
        return "waited"
    assert said in {"calling", "parked"}
    if said == "parked":  # the answer is written down, and what it is to was not begun
        assert rail.resume() is not None
        assert changed(workspace) == (mark, mark)
        return "was answered"
    return "had not begun"


def changed(workspace: Path) -> tuple[str, str]:
    """What the second call changes, which is one thing."""
    paths = (workspace / ".git" / "hooks" / "pre-commit", workspace / "made")
    hook, made = (path.read_text().strip() if path.exists() else "" for path in paths)
    assert hook == made
    return hook, made


def killed(workspace: Path, state: Path, begin: str, draw: random.Random) -> tuple[str, str]:
    """Starts a victim and kills it a drawn time after it said something; what it said last, and the batch's mark."""
    command = [sys.executable, late_victim.__file__, workspace, state, "s", begin]
    lines_before, seconds = draw.randrange(1, 4), 0.25 * draw.random() ** 2
    lines: list[bytes] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        while len(lines) < lines_before:
            lines.append(victim.stdout.readline())
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            pass
        os.kill(victim.pid, signal.SIGKILL)
        lines += victim.stdout.read().splitlines(keepends=True)
    said, mark = [line for line in lines if line.endswith(b"\n")][-1].decode().split()
    return said, mark
