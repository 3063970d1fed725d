"""kill -9 while changes are made or taken back: every file is as before or as after, and the record says which."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kills import kills
from undo_victim import opened, play, prepare

from handrail import Handrail
from handrail.protocol.events import ToolCallError
from handrail.state import StoredState

KILLS = 100
VICTIM = Path(__file__).with_name("undo_victim.py")
Tree = dict[str, bytes]


def tree(workspace: Path) -> Tree:
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


class Step(NamedTuple):
    """What a step that nobody cuts off does."""

    kind: str
    before: Tree
    after: Tree


def played(folder: Path, seed: str) -> list[Step]:
    """The steps of a run that nobody kills."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    prepare(workspace)
    steps: list[Step] = []
    with opened(workspace, folder / "state") as rail:
        before = tree(workspace)
        for kind in play(rail, seed):
            steps.append(Step(kind, before, tree(workspace)))
            before = steps[-1].after
    return steps


def killed(folder: Path, seed: str, draw: random.Random) -> int:
    """Kills a run after some steps and, within the next, a drawn time; how many steps were over."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    prepare(workspace)
    over, microseconds = draw.randrange(1, 30), draw.randrange(0, 8_000)
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


def test_a_kill_leaves_every_change_made_or_not_made_and_says_which(
    tmp_path: Path, count: Callable[[int], int], note: Callable[[str], None], deep: bool
) -> None:
    draw = random.Random(20261115)
    seeds = [f"seed {number}" for number in range(3 if deep else 1)]
    plays = {seed: played(tmp_path / "whole" / seed, seed) for seed in seeds}
    ends: Counter[str] = Counter()
    for number in kills(count(KILLS), lambda: ends["made"] + ends["not made"]):
        seed, folder = draw.choice(seeds), tmp_path / str(number)
        over = killed(folder, seed, draw)
        if over == len(plays[seed]):
            ends["came too late"] += 1
            continue
        workspace, step = folder / "workspace", plays[seed][over]
        with opened(workspace, folder / "state") as rail:
            ends[check(rail, workspace, step)] += 1
            while rail.undo().ok:  # nothing of it stands in the way of taking everything back
                pass
            assert tree(workspace) == plays[seed][0].before
        assert StoredState(str(folder / "state")).verify().intact
    note(f"{ends.total()} kills: {dict(ends)}")
    assert ends["made"] + ends["not made"], "no kill came while a change was on its way"


def check(rail: Handrail, workspace: Path, step: Step) -> str:
    """Whether the step that was cut off is made, not made, or was over: by the files and by what is said of it."""
    found = tree(workspace)
    sides = {path: (step.before.get(path), step.after.get(path)) for path in {*step.before, *step.after}}
    assert set(found) <= set(sides), "an unfinished file was left behind"
    assert all(found.get(path) in states for path, states in sides.items()), "a file is neither old nor new"
    assert (workspace / "linked" / "one").samefile(workspace / "linked" / "other")
    if step.kind != "several":  # a batch of calls may be cut off between two of them, one call may not
        assert found in (step.before, step.after)
    results = [event.result for event in rail.events() if isinstance(event, ToolCallError)]
    told = [result.summary for result in results if result.error is not None and result.error.code == "INTERRUPTED"]
    if not told:
        return "over"
    [message] = told
    assert ("Its change was applied:" in message) != ("Nothing was changed." in message)
    made = "Its change was applied:" in message
    if step.kind != "several" and step.before != step.after:
        assert found == (step.after if made else step.before)
    return "made" if made else "not made"
