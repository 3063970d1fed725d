"""A commit, or an undo of one, that is cut off at a certain point: the next session settles it to before or after."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.changes.support import tree
from tests.conftest import DEEP

from handrail import Handrail
from handrail.protocol.events import ToolCallError

Rail = Callable[..., Handrail]

# Is killed by itself when a function of handrail has been called so many times.
DIES = """
import importlib, os, signal, sys
from handrail import Handrail
from handrail.settings import Settings

workspace, state, module, name, calls, undoes = sys.argv[1:]
rail = Handrail(workspace, mode="full", session="killed", state_dir=state, settings=Settings())
if undoes:
    assert rail.call("exec", {"command": "bash script.sh"}).ok
home = importlib.import_module(module)
for part in name.split(".")[:-1]:
    home = getattr(home, part)
real, left = getattr(home, name.split(".")[-1]), [int(calls)]

def dies(*args, **options):
    result = real(*args, **options)
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(home, name.split(".")[-1], dies)
rail.undo() if undoes else rail.call("exec", {"command": "bash script.sh"})
"""
START = """
mkdir -p goes/deep stays mode; echo 1 >goes/deep/f; echo 1 >stays/a; echo 1 >stays/b; echo 1 >stays/c
echo shared >one; ln one two; ln -s here link; echo 1 >becomes; chmod 640 stays/c
mkdir becomes-link; echo 1 >becomes-link/f
"""
SCRIPT = """
set -e
rm -r goes; echo 2 >stays/a; rm stays/b; chmod 755 stays/c; chmod 500 mode; echo more >>one; ln -sfn there link
rm becomes; mkdir becomes; echo 2 >becomes/f; rm -r becomes-link; ln -s stays becomes-link
mkdir -p new/closed new/empty; echo 3 >new/closed/f; ln new/closed/f new/also
chmod 511 new/empty; chmod 500 new/closed new
"""
POINTS = [
    ("handrail.store.change_log", "ChangeLog.begin", 0),
    ("handrail.changes.apply", "StepApplier._take", 2),
    ("handrail.changes.apply", "StepApplier._take", 8),
    ("handrail.changes.apply", "StepApplier._take", 14),
    ("handrail.changes.apply", "StepApplier._take", 99),
    ("handrail.changes.tree_state", "StagingDir.stash", 1),
    ("handrail.workspace.atomic", "exchange", 0),
    ("handrail.workspace.atomic", "exchange", 0),
    ("handrail.workspace.atomic", "rename_new", 1),
    ("handrail.workspace.in_place", "_reserve_space", 0),
    ("handrail.workspace.in_place", "_overwrite", 0),
    ("handrail.changes.apply", "StepApplier._make_folder", 0),
    ("handrail.changes.apply", "StepApplier._change_folder_mode", 0),
    ("handrail.changes.tree_state", "set_mode", 0),
    ("handrail.changes.apply", "set_folder_modes", 0),
    ("handrail.store.change_log", "ChangeLog.finish", 0),
]


@pytest.mark.parametrize("undoes", [False, True], ids=["commit", "undo"])
@pytest.mark.parametrize("point", POINTS if DEEP else POINTS[1::4], ids=lambda point: f"{point[1]} {point[2]}")
def test_it_settles_to_before_or_after_and_says_which(
    rail: Rail, workspace: Path, tmp_path: Path, point: tuple[str, str, int], undoes: bool
) -> None:
    _skip_without_layers(rail)
    subprocess.run(["bash", "-ec", START], cwd=workspace, check=True)
    (workspace / "script.sh").write_text(SCRIPT)
    old, new = tree(workspace), _directly(workspace, tmp_path)
    command = [sys.executable, "-c", DIES, workspace, tmp_path / "state", *map(str, point), "yes" if undoes else ""]
    assert subprocess.run(command, check=False).returncode in {-9, 0}
    one = rail(session="killed")
    told = [event.result for event in one.events() if isinstance(event, ToolCallError)]
    before, after = (new, old) if undoes else (old, new)
    if told:
        made = "Its change was applied:" in told[0].summary
        assert made != ("Nothing was changed" in told[0].summary)
        assert tree(workspace) == (after if made else before)
    else:
        assert tree(workspace) == after
    assert (workspace / "one").samefile(workspace / "two")
    while one.undo().ok:
        pass
    assert tree(workspace) == old


def _directly(workspace: Path, tmp_path: Path) -> dict[str, tuple[object, ...]]:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", workspace, copy], check=True)
    subprocess.run(["bash", "script.sh"], cwd=copy, check=True)
    return tree(copy)


def _skip_without_layers(rail: Rail) -> None:
    session = rail(session="looks")._session
    if reason := session.commands.find_overlay_obstacle(session.workspace.roots):
        pytest.skip(f"no layer can be had here: {reason}")
