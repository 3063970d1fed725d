"""kill -9 while what a command changed is kept or taken back: all is as before or as after, and it is said which."""

import hashlib
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
from typing import NamedTuple

import pytest
from kills import kills
from layer_victim import STEPS, opened, play, prepare

from handrail import Handrail
from handrail.protocol.events import ToolCallError
from handrail.state import StoredState

KILLS = 100
SEEDS = 2
VICTIM = Path(__file__).with_name("layer_victim.py")
Tree = dict[str, tuple[object, ...]]


def tree(workspace: Path) -> Tree:
    """All there is: kind, mode, bytes, where links lead, and how many names a file has."""
    return {str(path.relative_to(workspace)): state(path) for path in workspace.rglob("*")}


def state(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return ("folder", stat.S_IMODE(status.st_mode))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return ("file", stat.S_IMODE(status.st_mode), digest)


class Step(NamedTuple):
    """What a step that nobody cuts off does."""

    kind: str
    before: Tree
    after: Tree


def played(folder: Path, seed: str) -> list[Step]:
    """The steps of a run that nobody kills."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    prepare(workspace, seed)
    steps: list[Step] = []
    with opened(workspace, folder / "state") as rail:
        if reason := rail._session.commands.find_overlay_obstacle(rail._session.workspace.roots):
            pytest.skip(f"no layer can be had here: {reason}")
        before = tree(workspace)
        for kind in play(rail, seed):
            steps.append(Step(kind, before, tree(workspace)))
            before = steps[-1].after
    return steps


def killed(folder: Path, seed: str, draw: random.Random) -> int:
    """Kills a run a drawn time after a change began; how many steps were over."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    prepare(workspace, seed)
    begun, microseconds = draw.randrange(1, STEPS // 2), draw.randrange(0, 25_000)
    command = [sys.executable, VICTIM, workspace, folder / "state", seed]
    over = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        while begun and (line := victim.stdout.readline()):
            begun -= line == b"begun\n"
            over += line == b"over\n"
        until = time.perf_counter() + microseconds / 1e6
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            pass
        os.kill(victim.pid, signal.SIGKILL)
        return over + victim.stdout.read().count(b"over\n")


def test_a_kill_leaves_what_a_command_changed_kept_or_not_kept_and_says_which(
    tmp_path: Path, count: Callable[[int], int], note: Callable[[str], None]
) -> None:
    draw = random.Random(20261116)
    seeds = [f"seed {number}" for number in range(SEEDS)]
    plays = {seed: played(tmp_path / "whole" / seed, seed) for seed in seeds}
    ends: Counter[str] = Counter()
    for number in kills(count(KILLS), lambda: any(end.endswith("made") for end in ends)):
        seed, folder = draw.choice(seeds), tmp_path / str(number)
        over = killed(folder, seed, draw)
        if over == len(plays[seed]):
            ends["came too late"] += 1
            continue
        workspace, step = folder / "workspace", plays[seed][over]
        with opened(workspace, folder / "state") as rail:
            ends[f"{step.kind}: {check(rail, workspace, step)}"] += 1
            while rail.undo().ok:  # nothing of it stands in the way of taking everything back
                pass
            assert tree(workspace) == plays[seed][0].before
        assert StoredState(str(folder / "state")).verify().intact
    note(f"{ends.total()} kills: {dict(ends)}")
    assert any(end.endswith("made") for end in ends), "no kill came while a change was on its way"


def check(rail: Handrail, workspace: Path, step: Step) -> str:
    """Whether the step that was cut off is made, not made, or was over: by the files and by what is said of it."""
    list(rail.events())
    found = tree(workspace)
    assert found in (step.before, step.after), differences(found, step)
    assert (workspace / "linked" / "one").samefile(workspace / "linked" / "other")
    results = [event.result for event in rail.events() if isinstance(event, ToolCallError)]
    told = [result.summary for result in results if result.error is not None and result.error.code == "INTERRUPTED"]
    if not told:
        return "over"
    [message] = told
    made = "Its change was applied:" in message
    if step.before != step.after:
        assert found == (step.after if made else step.before), message
    return "made" if made else "not made"


def differences(found: Tree, step: Step) -> str:
    """Where the tree is between: what is not as before, and what is not as after, the fewer of them."""
    wrong = [
        [
            f"{path}: {found.get(path)} and not {side.get(path)}"
            for path in {*found, *side}
            if found.get(path) != side.get(path)
        ]
        for side in (step.before, step.after)
    ]
    return f"{step.kind}: {sorted(min(wrong, key=len))[:10]}"
