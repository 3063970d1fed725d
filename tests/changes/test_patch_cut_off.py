"""A patch that is killed at every point there is, and patches of two processes at once: whole, or not at all."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.events import ToolCallError
from handrail.settings import Settings
from handrail.settings.model import Tools

Rail = Callable[..., Handrail]
Tree = dict[str, bytes | None]
ENABLED = Settings(tools=Tools(enable=("apply_patch",)))
PATCH = """*** Begin Patch
*** Update File: a
-a
+A
*** Update File: b
*** Move to: new/deep/b
-b
+B
*** Delete File: c
*** Delete File: link
*** Add File: new/d
+d
*** End Patch
"""
# Applies a patch, and perhaps takes it back, and is killed by itself when a function was called so many times.
DIES = """
import importlib, os, signal, sys
from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools

workspace, state, session, patch, work, module, name, calls = sys.argv[1:]
settings = Settings(tools=Tools(enable=("apply_patch",)))
rail = Handrail(workspace, mode="full", session=session, state_dir=state, settings=settings)
if work == "undo":
    assert rail.apply_patch(patch).ok
home, left = importlib.import_module(module), [int(calls)]
for part in name.split(".")[:-1]:
    home = getattr(home, part)
real = getattr(home, name.split(".")[-1])

def dies(*args, **options):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **options)

setattr(home, name.split(".")[-1], dies)
assert (rail.undo() if work == "undo" else rail.apply_patch(patch)).ok
os._exit(3)
"""
POINTS = {
    "before a step": ("handrail.changes.apply", "StepApplier._take"),
    "before a swap": ("handrail.workspace.atomic", "exchange"),
    "before what was put aside goes": ("handrail.workspace.file_state", "FileSnapshot.is_unchanged_at"),
    "before the record": ("handrail.store.change_log", "ChangeLog.finish"),
}


def tree(folder: Path) -> Tree:
    """Every file with its bytes, a link with where it leads, a folder with nothing."""
    return {
        str(path.relative_to(folder)): str(path.readlink()).encode()
        if path.is_symlink()
        else None
        if path.is_dir()
        else path.read_bytes()
        for path in folder.rglob("*")
    }


@pytest.fixture
def old(workspace: Path) -> Tree:
    for name in "abc":
        (workspace / name).write_text(f"{name}\n")
    (workspace / "link").symlink_to("a")
    return tree(workspace)


AFTER: Tree = {"a": b"A\n", "new": None, "new/deep": None, "new/deep/b": b"B\n", "new/d": b"d\n"}


@pytest.mark.parametrize("work", ["patch", "undo"])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_leaves_all_or_nothing_and_that_is_told(
    point: str, work: str, old: Tree, workspace: Path, tmp_path: Path, rail: Rail
) -> None:
    before, after = (old, AFTER) if work == "patch" else (AFTER, old)
    state = tmp_path / "state"
    for calls in range(20):
        session = f"killed-{calls}"
        command = [sys.executable, "-c", DIES, workspace, state, session, PATCH, work, *POINTS[point], str(calls)]
        ended = subprocess.run(command, check=False).returncode
        opened = rail(mode="full", session=session, settings=ENABLED)
        if ended == 3:
            assert tree(workspace) == after
            break
        assert ended == -9
        results = [event.result for event in opened.events() if isinstance(event, ToolCallError)]
        made = "Its change was applied:" in results[-1].summary
        assert made or results[-1].summary.endswith("Nothing was changed.")
        assert tree(workspace) == (after if made else before)
        while opened.undo().ok:
            pass
        assert tree(workspace) == old
        opened.close()
    else:
        pytest.fail("there were more points than were tried")
    assert calls, "it was never killed"


def test_who_does_not_offer_the_tool_is_told_what_became_of_its_call_too(
    old: Tree, workspace: Path, tmp_path: Path, rail: Rail
) -> None:
    where = POINTS["before the record"]
    command = [sys.executable, "-c", DIES, workspace, tmp_path / "state", "killed", PATCH, "patch", *where, "0"]
    assert subprocess.run(command, check=False).returncode == -9
    results = [event.result for event in rail(session="killed").events() if isinstance(event, ToolCallError)]
    assert "Its change was applied: a, b, new/deep/b and 3 more (undo 1)." in results[-1].summary
    assert tree(workspace) == AFTER


# Raises a number in three files by one, over and over; says how often that was done.
COUNTS = """
import sys
from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools

workspace, state, names, times = sys.argv[1:]
settings = Settings(tools=Tools(enable=("apply_patch",)))
done = 0
with Handrail(workspace, mode="full", state_dir=state, settings=settings) as rail:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(times)):
        now = rail.read("a").content.strip()
        for name in "bc":
            rail.read(name)
        hunks = "".join(f"*** Update File: {name}\\n-{now}\\n+{int(now) + 1}\\n" for name in names)
        result = rail.apply_patch(f"*** Begin Patch\\n{hunks}*** End Patch")
        done += result.ok
        assert result.ok or result.error.code in {"NO_MATCH", "STALE_FILE", "CONFLICT"}, result.error
print(done)
"""


def test_patches_of_two_processes_never_mix(workspace: Path, tmp_path: Path, count: Callable[[int], int]) -> None:
    for name in "abc":
        (workspace / name).write_text("0\n")
    times = str(count(500))
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTS, workspace, tmp_path / "state", names, times],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for names in ("abc", "cba")
    ]
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    done = 0
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in crowd:
        done += int(process.communicate(timeout=120)[0])
        assert process.returncode == 0
    assert {(workspace / name).read_text() for name in "abc"} == {f"{done}\n"}
    assert done > 0


@pytest.mark.parametrize("work", ["patch", "undo"])
def test_a_kill_between_the_bytes_and_the_mode_of_a_file_with_two_names_is_taken_back(
    work: str, workspace: Path, tmp_path: Path, rail: Rail
) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "a").chmod(0o644)
    (workspace / "b").hardlink_to(workspace / "a")
    patch = "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"
    where = ("handrail.workspace.in_place", "_change_mode")
    command = [sys.executable, "-c", DIES, workspace, tmp_path / "state", "killed", patch, work, *where, "0"]
    assert subprocess.run(command, check=False).returncode == -9
    opened = rail(mode="full", session="killed", settings=ENABLED)
    before = (b"x\n", 0o644) if work == "patch" else (b"y\n", 0o755)
    assert ((workspace / "b").read_bytes(), (workspace / "b").stat().st_mode & 0o777) == before
    assert opened.undo().ok == (work == "undo")
    assert ((workspace / "b").read_bytes(), (workspace / "b").stat().st_mode & 0o777) == (b"x\n", 0o644)
