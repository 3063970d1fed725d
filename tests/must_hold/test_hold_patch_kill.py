"""kill -9 while a patch changes many files: all of them are as before, or all as after, and the record says which."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from kills import kills
from patch_victim import opened, play, prepare

from handrail import Handrail
from handrail.protocol.events import ToolCallError
from handrail.state import StoredState

KILLS = 100
VICTIM = Path(__file__).with_name("patch_victim.py")
Tree = dict[str, tuple[bytes, int]]


def tree(workspace: Path) -> Tree:
    found = [path for path in workspace.rglob("*") if path.is_file()]
    return {str(path.relative_to(workspace)): (path.read_bytes(), path.stat().st_mode) for path in found}


def played(folder: Path, seed: str) -> list[Tree]:
    """The tree before every patch of a run that nobody kills, and after the last."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    prepare(workspace)
    trees = [tree(workspace)]
    with opened(workspace, folder / "state") as rail:
        trees += [tree(workspace) for _ in play(rail, workspace, seed)]
    return trees


def killed(folder: Path, seed: str, draw: random.Random) -> int:
    """Kills a run after some patches and, within the next, a drawn time; how many patches were over."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    prepare(workspace)
    over, microseconds = draw.randrange(1, 20), draw.randrange(0, 25_000)
    command = [sys.executable, VICTIM, workspace, folder / "state", seed]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        for _ in range(over + 1):
            victim.stdout.readline()
        until = time.perf_counter() + microseconds / 1e6
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            pass
        os.kill(victim.pid, signal.SIGKILL)
        return over + victim.stdout.read().count(b"over\n")


def test_a_kill_leaves_a_patch_made_or_not_made_and_never_between(
    tmp_path: Path, count: Callable[[int], int], note: Callable[[str], None], deep: bool
) -> None:
    draw = random.Random(20261116)
    seeds = [f"seed {number}" for number in range(3 if deep else 1)]
    plays = {seed: played(tmp_path / "whole" / seed, seed) for seed in seeds}
    ends: Counter[str] = Counter()
    for number in kills(count(KILLS), lambda: ends["made"] + ends["not made"]):
        seed, folder = draw.choice(seeds), tmp_path / str(number)
        over = killed(folder, seed, draw)
        if over == len(plays[seed]) - 1:
            ends["came too late"] += 1
            continue
        before, after = plays[seed][over : over + 2]
        workspace = folder / "workspace"
        with opened(workspace, folder / "state") as rail:
            ends[check(rail, workspace, before, after)] += 1
            while rail.undo().ok:  # nothing of it stands in the way of taking everything back
                pass
            assert tree(workspace) == plays[seed][0]
        assert StoredState(str(folder / "state")).verify().intact
    note(f"{ends.total()} kills: {dict(ends)}")
    assert ends["made"] + ends["not made"], "no kill came while a patch was on its way"


def check(rail: Handrail, workspace: Path, before: Tree, after: Tree) -> str:
    """Whether the patch that was cut off is made, not made, or was over: by the files and by what is said of it."""
    found = tree(workspace)
    assert found in (before, after), "some files are as before and some as after"
    assert (workspace / "linked" / "one").samefile(workspace / "linked" / "other")
    results = [event.result for event in rail.events() if isinstance(event, ToolCallError)]
    told = [result.summary for result in results if result.error is not None and result.error.code == "INTERRUPTED"]
    if not told:
        return "over"
    [message] = told
    made = "Its change was applied:" in message
    assert made != ("Nothing was changed." in message)
    assert found == (after if made else before)
    return "made" if made else "not made"
