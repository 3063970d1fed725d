"""Trees of processes that do what they can to outlive their command: soon after its end nothing of them is left."""

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tree_plans import RUNNERS, Plan, draw_node, draw_plan, slowed_down

from handrail import Handrail
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Limits, Sandbox
from leftovers import MARK, Watch

TREES = 200
EVERY_DAY = {2: 4, 1: 2}
"""Trees for each way to end a command, at each tier."""
GONE_WITHIN = 30.0
"""At once, mostly; long before a tree ends by itself, and long enough for a busy machine."""
TREE = Path(__file__).with_name("process_tree.py")
COMMANDER = Path(__file__).parent.parent / "commander.py"
SAMPLES = Path(__file__).with_name("samples")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"
NOBODY = 65534


class Stage:
    """A command that is a tree of processes, and who watches it."""

    def __init__(self, folder: Path, seed: int, tier: int, *, leaves: bool) -> None:
        self.workspace = folder / f"workspace-{seed}"
        self.workspace.mkdir()
        shutil.copy(TREE, self.workspace)
        self.state, self.tier, self.seed = folder / f"state-{seed}", tier, seed
        self.mark = f"{folder}/{seed}"
        drawn = draw_plan(seed, leaves=leaves)
        # Tier 1 looks for processes one by one, and is too slow for those that are another every moment.
        self.command = command_of(drawn if tier == 2 else slowed_down(drawn))

    def watch(self) -> Watch:
        return Watch(self.workspace, self.mark)

    def rail(self) -> Handrail:
        sandbox = Sandbox(tier=self.tier, environment=(MARK,))
        return Handrail(self.workspace, mode="full", state_dir=self.state, settings=Settings(sandbox=sandbox))


def command_of(plan: Plan) -> str:
    return f"{PYTHON} -I -S process_tree.py {shlex.quote(json.dumps(plan))} alive"


@pytest.fixture(params=[2, 1], ids=["tier 2", "tier 1"])
def tier(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="handrail-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def stages(open_folder: Path, tier: int, deep: bool, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Iterator[Stage]]:
    """The trees of one test, each with a workspace of its own; `turn` tells tests apart on an ordinary day."""

    def draw(turn: int, *, leaves: bool = False) -> Iterator[Stage]:
        trees = TREES if deep else EVERY_DAY[tier]
        for seed in range(trees) if deep else range(turn * trees, (turn + 1) * trees):
            stage = Stage(open_folder, seed, tier, leaves=leaves)
            monkeypatch.setenv(MARK, stage.mark)
            yield stage

    return draw


def begun(pool: ThreadPoolExecutor, rail: Handrail, stage: Stage, **more: int) -> "Future[ToolResult[Any]]":
    return pool.submit(rail.call, "exec", {"command": stage.command, **more})


def test_nothing_is_left_when_a_command_ends_before_its_tree(stages: Callable[..., Iterator[Stage]]) -> None:
    for stage in stages(0, leaves=True):
        with stage.watch() as watch, stage.rail() as rail, ThreadPoolExecutor(1) as pool:
            call = begun(pool, rail, stage)
            assert watch.wait_ready(60), watch.trouble
            result = call.result(GONE_WITHIN)
            assert watch.left_after(GONE_WITHIN) == [], stage.seed
            assert result.ok, result.error
            assert result.data.exit_code == 0


def test_nothing_is_left_when_a_command_takes_too_long(stages: Callable[..., Iterator[Stage]]) -> None:
    for stage in stages(1):
        with stage.watch() as watch, stage.rail() as rail, ThreadPoolExecutor(1) as pool:
            milliseconds = 300 + stage.seed % 5 * 100
            result = begun(pool, rail, stage, timeoutMs=milliseconds).result(milliseconds / 1e3 + GONE_WITHIN)
            assert watch.left_after(GONE_WITHIN) == [], stage.seed
            assert result.error is not None
            assert result.error.code == "TIMEOUT"
            assert "time" in result.meta.limits


def test_nothing_is_left_when_a_command_is_cancelled(stages: Callable[..., Iterator[Stage]]) -> None:
    for stage in stages(2):
        with stage.watch() as watch, stage.rail() as rail, ThreadPoolExecutor(1) as pool:
            call = begun(pool, rail, stage)
            assert watch.wait_ready(60), watch.trouble
            rail.cancel()
            result = call.result(GONE_WITHIN)
            assert watch.left_after(GONE_WITHIN) == [], stage.seed
            assert result.error is not None
            assert result.error.code == "CANCELLED"


def test_nothing_is_left_when_the_runtime_is_killed(stages: Callable[..., Iterator[Stage]]) -> None:
    for stage in stages(3):
        user = NOBODY if stage.seed % 2 and stage.tier == 2 and os.geteuid() == 0 else None
        with stage.watch() as watch, subprocess.Popen(commander(stage, user), stdout=subprocess.PIPE) as runtime:
            ready = watch.wait_ready(60)
            os.kill(runtime.pid, signal.SIGKILL)
            assert ready, (watch.trouble, runtime.stdout and runtime.stdout.read())
            assert runtime.wait(60) == -signal.SIGKILL
            assert watch.left_after(GONE_WITHIN) == [], stage.seed


@pytest.mark.parametrize("tier", [2])
@pytest.mark.parametrize("life", sorted(RUNNERS))
def test_who_is_another_process_every_moment_is_caught(
    stages: Callable[..., Iterator[Stage]], tier: int, life: str
) -> None:
    stage = next(stages(4))
    runner = draw_node(random.Random(0), depth=9) | {"birth": "fork", "life": life, "renamed": None}
    stage.command = command_of({"children": [runner], "traits": [], "closed": False, "life": "wait"})
    with stage.watch() as watch, stage.rail() as rail, ThreadPoolExecutor(1) as pool:
        call = begun(pool, rail, stage, timeoutMs=100_000)
        assert watch.wait_ready(60), watch.trouble
        rail.cancel()
        left = watch.left_after(GONE_WITHIN)
        assert left == []
        assert call.result(GONE_WITHIN).error is not None


def test_memory_counts_where_the_first_thread_is_gone(tmp_path: Path, workspace: Path, tier: int) -> None:
    shutil.copy(SAMPLES / "scripts" / "hidden_memory.py", workspace)
    settings = Settings(sandbox=Sandbox(tier=tier), limits=Limits(memory="128 MB"))
    with Handrail(workspace, mode="full", state_dir=tmp_path / "state", settings=settings) as rail:
        result = rail.exec(f"{PYTHON} hidden_memory.py")
    assert result.error is not None, result.content
    assert result.error.code == "LIMIT_EXCEEDED"
    assert result.meta.limits == ("memory",)


def commander(stage: Stage, user: int | None) -> list[str]:
    if user is not None:
        stage.state.mkdir()
        for path in (stage.workspace, stage.state, *stage.workspace.iterdir()):
            os.chown(path, user, user)
    task = {
        "workspace": str(stage.workspace),
        "state": str(stage.state),
        "user": user,
        "settings": {"sandbox": {"tier": stage.tier, "environment": [MARK]}},
        "calls": [{"command": stage.command}],
    }
    return [sys.executable, str(COMMANDER), json.dumps(task)]
