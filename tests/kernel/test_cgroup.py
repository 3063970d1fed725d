"""Control groups: by the kernel's own where one can be mounted, and by the files that it would read and write."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.kernel.cgroup import ControlGroup, find_parent_group

LIMITS = {"memory": 1 << 30, "threads": 400}


def hierarchy(folder: Path, controllers: str = "cpu memory pids") -> Path:
    folder.mkdir()
    (folder / "cgroup.subtree_control").write_text(controllers)
    (folder / "cgroup.procs").touch()
    return folder


def test_groups_are_made_beside_our_own_where_memory_and_processes_are_passed_on(tmp_path: Path) -> None:
    own = next((line[3:] for line in Path("/proc/self/cgroup").read_text().split("\n") if line.startswith("0::")), "/")
    parent = hierarchy(tmp_path / "mount")
    for name in own.strip("/").split("/")[:-1]:
        parent = hierarchy(parent / name)
    assert find_parent_group(str(tmp_path / "mount")) == str(parent)


@pytest.mark.parametrize("controllers", ["", "memory", "pids cpu", "memory_x pids"])
def test_what_passes_on_too_little_is_not_used(tmp_path: Path, controllers: str) -> None:
    assert find_parent_group(str(hierarchy(tmp_path / f"mount{controllers}", controllers))) is None


def test_a_group_gets_the_limits_and_is_removed(tmp_path: Path) -> None:
    with ControlGroup(str(tmp_path), **LIMITS) as group:
        (made,) = tmp_path.iterdir()
        assert (made / "memory.max").read_text() == str(1 << 30)
        assert (made / "pids.max").read_text() == "400"
        for file in made.iterdir():  # the kernel's own files go with the group
            file.unlink()
        assert group.list_fired_limits() == []
    assert not list(tmp_path.iterdir())


def test_the_limits_that_the_kernel_held_it_to_are_named(tmp_path: Path) -> None:
    with ControlGroup(str(tmp_path), **LIMITS) as group:
        (made,) = tmp_path.iterdir()
        (made / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
        (made / "pids.events").write_text("max 0\n")
        assert group.list_fired_limits() == ["memory"]
        (made / "pids.events").write_text("max 7\n")
        assert group.list_fired_limits() == ["memory", "processes"]
        for file in made.iterdir():
            file.unlink()


def test_where_none_can_be_made_a_command_starts_outside(tmp_path: Path) -> None:
    for parent in (None, str(tmp_path / "nothing")):
        with ControlGroup(parent, **LIMITS) as group:
            assert group.wrap_argv(("true",)) == ("true",)
            assert group.list_fired_limits() == []


def test_what_joins_writes_its_own_number_and_becomes_the_program(tmp_path: Path) -> None:
    with ControlGroup(str(tmp_path), **LIMITS) as group:
        (made,) = tmp_path.iterdir()
        done = subprocess.run(group.wrap_argv(("echo", "ran")), check=True, capture_output=True)
        assert done.stdout == b"ran\n"
        assert int((made / "cgroup.procs").read_text()) > 1
        for file in made.iterdir():
            file.unlink()


KERNEL = """
import os, subprocess, sys
from handrail.kernel.cgroup import ControlGroup
place, name = sys.argv[1], os.path.join(sys.argv[1], "handrail-test")
subprocess.run(["mount", "-t", "cgroup2", "none", place], check=True)
group = ControlGroup(None, memory=0, threads=0)
os.mkdir(name)
group._path = name  # no controller is free on every machine: membership is what is tried here
try:
    told = subprocess.run(group.wrap_argv(("cat", "/proc/self/cgroup")), check=True, capture_output=True, text=True)
finally:
    group.__exit__(None, None, None)
print(any(line == "0::/handrail-test" for line in told.stdout.splitlines()), os.path.exists(name))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_the_kernel_takes_the_program_into_the_group_and_lets_it_be_removed(tmp_path: Path) -> None:
    command = ["unshare", "--mount", sys.executable, "-c", KERNEL, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if "mount" in done.stderr and "Permission" in done.stderr:
        pytest.skip("control groups cannot be mounted here")
    assert done.stdout.split() == ["True", "False"], done.stderr
