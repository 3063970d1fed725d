"""Where no layer can lie over the workspace, that is known beforehand, with the reason; and what happens else."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.sandbox.namespaces import World, ended
from tests.sandbox.overlays import WHY_NOT, LayeredWorld

from handrail.protocol.errors import ToolError
from handrail.sandbox.diagnosis import diagnose_mount_failure
from handrail.sandbox.overlay import overlay, pool
from handrail.sandbox.overlay.pool import (
    MountPoint,
    find_file_system,
    find_overlay_obstacle,
    list_memory_folders,
)
from handrail.sandbox.sandbox import CommandSandbox

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

_ASKING = """
import sys
from handrail.sandbox.profile import SandboxHost
from handrail.sandbox.sandbox import CommandSandbox
folder = sys.argv[1]
sandbox = CommandSandbox(SandboxHost(home=folder + "/home", environ={"PATH": "/usr/bin:/bin"}, state=folder + "/state"))
roots = (folder + "/home/projects/mine",)
print(sandbox.find_overlay_obstacle(roots), "/", sandbox.list_overlay_gaps(roots))
if sandbox.find_overlay_obstacle(roots) is None:
    with sandbox.create_overlay(roots) as layer:
        print(layer.folder)
    sandbox.close()
"""

_FILLING = """
import os, sys
from pathlib import Path
from tests.sandbox.overlays import LayeredWorld
world = LayeredWorld(Path(sys.argv[1]))
if why := world.sandbox.find_overlay_obstacle(world.roots):
    print("no layer:", why)
else:
    with world.new_layer() as layer:
        print(world.in_layer("head -c 8000000 /dev/zero >large; echo ended", layer).out)
    world.sandbox.close()
    print("left:", os.listdir(world.folder / "state/layers") + os.listdir(world.workspace))
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LayeredWorld]:
    yield LayeredWorld(tmp_path)
    pool.forget()


@pytest.fixture
def mounted(world: LayeredWorld) -> Callable[..., str]:
    """Asks in a process for which something was mounted before, by commands of the shell."""

    def ask(commands: str, program: str = _ASKING) -> str:
        own = [] if os.geteuid() == 0 else ["--map-root-user"]
        script = f'cd "$1" && {commands} && exec "$2" -c "$3" "$1"'
        words = ["unshare", *own, "--mount", "sh", "-c", script, "sh", str(world.folder), sys.executable, program]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
        if "mount:" in done.stderr:
            pytest.skip(f"this machine does not let us mount: {done.stderr}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return ask


def test_a_mount_in_the_workspace_is_named(world: LayeredWorld, mounted: Callable[..., str]) -> None:
    (world.workspace / "odd: name/sub").mkdir(parents=True)
    said = mounted('mount -t tmpfs none "home/projects/mine/odd: name/sub"')
    assert "odd: name/sub in " in said
    assert "is a mount of its own, which would be missing under an overlay" in said


_LOOKING_TWICE = """
import os, subprocess, sys
from handrail.sandbox.overlay.pool import read_mounts
place = sys.argv[1] + "/home"
places = lambda: place in [mount.place for mount in read_mounts()]
def forked():
    if (child := os.fork()) == 0:
        os._exit(places())
    return bool(os.waitpid(child, 0)[1])
print(places(), places(), forked())
subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
print(forked(), places(), places(), forked())
subprocess.run(["umount", place], check=True)
print(places(), forked())
"""


def test_a_mount_that_comes_or_goes_is_seen_at_once_by_everybody_who_asks(
    mounted: Callable[..., str],
) -> None:
    assert mounted("true", _LOOKING_TWICE).split() == [*["False"] * 3, *["True"] * 4, *["False"] * 2]


def test_a_command_that_fills_the_disk_is_told_so_and_leaves_nothing(mounted: Callable[..., str]) -> None:
    said = mounted("mkdir -p state && mount -t tmpfs -o size=3m none state", _FILLING)
    if "no layer:" in said:
        pytest.skip(f"files in memory have no attributes on this kernel: {said}")
    assert "No space left on device" in said
    assert said.endswith("left: []\n")


def test_a_workspace_that_is_mounted_itself_can_have_a_layer(mounted: Callable[..., str]) -> None:
    assert mounted("mount --bind home/projects/mine home/projects/mine").startswith("None")


def test_a_workspace_on_a_read_only_file_system_gets_no_layer(mounted: Callable[..., str]) -> None:
    said = mounted("mount --bind home/projects/mine home/projects/mine && mount -o remount,bind,ro home/projects/mine")
    assert "is on a file system that is mounted read-only" in said


def test_a_state_folder_on_overlayfs_keeps_layers_in_memory_and_says_how_much_fits(
    world: LayeredWorld, mounted: Callable[..., str]
) -> None:
    for name in ("state", "lower", "upper", "work"):
        (world.folder / name).mkdir(exist_ok=True)
    if not list(list_memory_folders({})):
        pytest.skip("there is no place in memory here")
    said = mounted("mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr none state")
    if "overlays do not work here" in said or "takes no" not in said:
        pytest.skip(f"files in memory have no attributes on this kernel: {said}")
    assert "what a command changes is held in memory, and " in said
    assert "/dev/shm/handrail-layers-" in said


def test_a_state_folder_in_the_workspace_holds_no_layer_of_it(tmp_path: Path) -> None:
    world = LayeredWorld(tmp_path, state="home/projects/mine/state")
    why = world.sandbox.find_overlay_obstacle(world.roots)
    if why is not None:
        assert f"the folder for overlays is in {world.workspace}" in why
        return
    with world.new_layer() as layer:
        assert not layer.folder.startswith(str(world.folder))
        assert world.in_layer("echo x >file", layer).code == 0
    assert not (world.workspace / "file").exists()
    assert "MB fit in" in world.sandbox.list_overlay_gaps(world.roots)[0]
    world.sandbox.close()


def test_a_workspace_on_overlayfs_can_have_a_layer(world: LayeredWorld, mounted: Callable[..., str]) -> None:
    for name in ("lower", "upper", "work"):
        (world.folder / name).mkdir()
    said = mounted("mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr none home/projects/mine")
    assert said.startswith("None")


def test_mounts_beside_the_roots_are_no_matter(tmp_path: Path) -> None:
    beside = (MountPoint("/", "ext4"), MountPoint("/proc", "proc"), MountPoint(f"{tmp_path}-other", "tmpfs"))
    assert find_overlay_obstacle((str(tmp_path),), beside) is None


def test_over_the_whole_disk_lies_no_layer(world: LayeredWorld) -> None:
    why = world.sandbox.find_overlay_obstacle(("/",))
    assert why is not None
    assert why.endswith("is a mount of its own, which would be missing under an overlay")


def test_the_mount_on_top_tells_the_file_system() -> None:
    table = (MountPoint("/", "ext4"), MountPoint("/a", "tmpfs"), MountPoint("/a", "overlay"), MountPoint("/ab", "nfs"))
    found = [find_file_system(path, table) for path in ("/a/b", "/ab/c", "/c", "/a")]
    assert found == ["overlay", "nfs", "ext4", "overlay"]


def test_settings_that_want_no_layers_are_the_reason(world: LayeredWorld) -> None:
    why = CommandSandbox(world.host(), most=2).find_overlay_obstacle(world.roots)
    assert why == "settings ask for none: sandbox.tier is 2"


def test_without_tier_2_there_is_no_layer(world: LayeredWorld) -> None:
    sandbox = CommandSandbox(world.host(environ={"PATH": ""}), most=1)
    assert sandbox.find_overlay_obstacle(world.roots) == "settings ask for none: sandbox.tier is 1"
    assert {failure.tier for failure in sandbox.report(world.roots).failures} <= {1}


def test_without_the_programs_that_mount_there_is_no_layer(
    world: LayeredWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layer = world.new_layer()
    monkeypatch.setattr(overlay, "_FOLDERS", (str(tmp_path),))
    assert world.sandbox.find_overlay_obstacle(world.roots) == (
        "the programs unshare and mount (of util-linux) are not installed"
    )
    with layer, pytest.raises(ToolError, match=r"are missing now.*Nothing was run"):
        world.in_layer("true", layer)


@pytest.mark.parametrize(
    ("said", "state", "root", "expected"),
    [
        ("unshare: unshare failed: Operation not permitted", "ext4", "ext4", "namespaces"),
        ("mount: wrong fs type", "overlay", "ext4", "the state folder /s is on overlay, which cannot store an overlay"),
        ("mount: wrong fs type", "fuse.sshfs", "ext4", "the state folder /s is on fuse.sshfs"),
        ("mount: wrong fs type", "ext4", "vfat", "/w is on vfat, which does not support overlays"),
        ("mount: wrong fs type", "ext4", "ext4", "overlays do not work here (mount: wrong fs type)"),
    ],
)
def test_what_was_seen_becomes_a_reason(said: str, state: str, root: str, expected: str) -> None:
    remedy = diagnose_mount_failure(said, "/s", state, [("/w", root)])
    assert expected in remedy.reason
    assert said in remedy.reason


def test_a_layer_that_cannot_be_mounted_after_all_runs_nothing_and_is_remembered(world: LayeredWorld) -> None:
    layer = world.new_layer()
    os.rmdir(layer.overlaid[0].work)
    with layer:
        done = world.in_layer("echo ran >ran; echo ran", layer)
        assert done.code == 125
        assert "exit-code" not in done.status
        error = world.sandbox.explain_failure(done.out, layer)
    assert error.code == "SANDBOX_UNAVAILABLE"
    assert "The overlay for the command could not be mounted (" in str(error)
    assert str(world.folder) not in str(error)
    assert "Nothing was run. Call again: it will run without one" in str(error)
    assert not os.listdir(world.workspace)
    assert "overlays do not work here (mount: " in str(world.sandbox.find_overlay_obstacle(world.roots))
    world.sandbox.forget()
    assert world.sandbox.find_overlay_obstacle(world.roots) is None


def test_where_one_of_two_roots_cannot_be_mounted_nothing_is_run(world: LayeredWorld) -> None:
    (world.folder / "second").mkdir()
    world.roots = (str(world.workspace), str(world.folder / "second"))
    with world.new_layer() as layer:
        os.rmdir(layer.overlaid[1].work)
        done = world.in_layer("echo ran", layer)
        assert (done.code, "ran" in done.out.split("\n")) == (125, False)


def test_a_state_folder_without_room_is_a_refusal(world: LayeredWorld) -> None:
    world.new_layer().remove()
    os.rmdir(world.folder / "state/layers")
    world.write("state/layers", "in the way")
    with pytest.raises(OSError, match="handrail's folder does not stay in"):
        world.sandbox.create_overlay(world.roots)
    assert "the state folder cannot be used" in str(world.sandbox.find_overlay_obstacle(world.roots))


def test_settings_that_ask_for_a_layer_refuse_what_gets_none_and_may_change_files(world: LayeredWorld) -> None:
    strict = CommandSandbox(world.host(), least=3)
    with pytest.raises(ToolError) as refused:
        strict.launch(world.confinement(), "true")
    said = "Settings ask for sandbox tier 3 (sandbox.least): a command may change files only in an overlay"
    assert str(refused.value).startswith(f"{said}, and a background process has no overlay. Nothing was run.")
    assert ended(strict.launch(world.proven(), "echo looked")).out == "looked\n"
    with world.new_layer() as layer:
        assert ended(strict.launch(world.confinement(), "echo tried", layer)).out == "tried\n"


def test_settings_that_ask_for_a_layer_where_none_can_be_say_why(world: LayeredWorld) -> None:
    strict = CommandSandbox(world.host(), most=2, least=3)
    with pytest.raises(ToolError, match=r"and settings ask for none: sandbox.tier is 2. Nothing was run."):
        strict.launch(world.confinement(), "true")


def test_the_report_of_roots_shows_tier_3_or_why_not(world: LayeredWorld) -> None:
    report = world.sandbox.report(world.roots)
    assert (report.tier, report.failures) == (3, ())
    assert report.means.endswith("in an overlay over the workspace")
    other = world.sandbox.report(("/",))
    assert (other.tier, other.failures[0].tier) == (2, 3)
    assert world.sandbox.report().tier == 2


def test_places_in_memory_are_for_their_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / f"handrail-layers-{os.geteuid()}"
    assert str(place) in [found.folder for found in list_memory_folders({"XDG_RUNTIME_DIR": str(tmp_path)})]
    place.chmod(0o777)
    assert str(place) not in [found.folder for found in list_memory_folders({"XDG_RUNTIME_DIR": str(tmp_path)})]
    place.rmdir()
    place.symlink_to(tmp_path)
    assert str(place) not in [found.folder for found in list_memory_folders({"XDG_RUNTIME_DIR": str(tmp_path)})]


def test_worlds_without_layers_are_what_they_were(tmp_path: Path) -> None:
    assert World(tmp_path).run("echo same").out == "same\n"
