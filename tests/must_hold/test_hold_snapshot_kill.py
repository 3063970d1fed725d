"""kill -9 at any moment of a command without a layer: what it changed is on the record, and can be taken back."""

import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import snapshot_victim
from kills import kills

from handrail import Handrail
from handrail.changes.snapshot.git_store import find_git
from handrail.settings import Settings
from handrail.settings.model import Sandbox

KILLS = 100
NAMESPACES = Settings(sandbox=Sandbox(tier=2))


def state_of(folder: Path) -> dict[str, tuple[int, str | bytes]]:
    found: dict[str, tuple[int, str | bytes]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (0 if stat.S_ISLNK(mode) else mode, content)
    return found


@pytest.mark.skipif(find_git() is None, reason="git is not installed")
def test_whatever_a_killed_command_had_changed_can_be_taken_back(
    tmp_path: Path, workspace: Path, count: Callable[[int], int], note: Callable[[str], None]
) -> None:
    state, draw = tmp_path / "state", random.Random(8)
    for name in ("a", "b", "c", "f1"):
        (workspace / name).write_text(f"{name} at the start\n")
    start, taken_back = state_of(workspace), Counter[str]()
    for _ in kills(count(KILLS), lambda: taken_back["cut off"]):
        killed(workspace, state, draw)
        with Handrail(workspace, mode="full", state_dir=state, settings=NAMESPACES) as rail:
            changes = [change for change in rail.changes() if change.in_effect and not change.undoes]
            taken_back.update("cut off" if "cut off" in change.summary else "ended" for change in changes)
            assert not any("is not known" in change.summary for change in changes)
            for change in changes:
                undone = rail.undo(change.number)
                assert undone.ok, (undone.error, change.summary)
        assert state_of(workspace) == start
    note(f"taken back: {dict(taken_back)}")
    assert taken_back["cut off"]


def killed(workspace: Path, state: Path, draw: random.Random) -> None:
    """Starts a victim and kills it a drawn time after it began a drawn call."""
    command = [sys.executable, snapshot_victim.__file__, workspace, state, str(draw.randrange(10**9))]
    calls, seconds = draw.randrange(1, 4), 0.5 * draw.random()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        while calls:
            calls -= victim.stdout.readline().startswith(b"calling")
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            pass
        os.kill(victim.pid, signal.SIGKILL)
