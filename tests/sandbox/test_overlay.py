"""What a command changes goes into its layer, and nothing else is changed by it."""

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.sandbox.overlays import WHY_NOT, LayeredWorld, fingerprint

from handrail.protocol.errors import ToolError
from handrail.sandbox.overlay.overlay import Overlay, drop_nested_roots, is_owned
from handrail.sandbox.overlay.pool import sweep
from handrail.sandbox.sandbox import CommandSandbox

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

ODD_NAMES = [
    "plain", "with space, comma: colon", "back\\slash \\040", "\"double\" 'single'", "new\nline\tand tab",
    "$HOME `id` ;&|#", "-n ünïcode", os.fsdecode(b"not \xff\xfe utf-8"), "x" * 200,
]  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> LayeredWorld:
    return LayeredWorld(tmp_path)


def test_what_a_command_changes_lies_in_the_layer_and_the_workspace_is_as_it_was(world: LayeredWorld) -> None:
    folder = world.workspace
    for name in ("written", "removed", "chmodded", "touched", "inner/renamed", "gone/file"):
        world.write(str((folder / name).relative_to(world.folder)), name)
    (folder / "link").symlink_to("written")
    os.setxattr(folder / "written", "user.note", b"old")
    before = fingerprint(folder)
    script = """
        echo new >written; rm removed; chmod 700 chmodded; touch touched; mv inner/renamed inner/other; rm -r gone
        ln -sf elsewhere link; mkdir made; echo made >made/file; ln written hard; echo more >>chmodded
    """
    with world.new_layer() as layer:
        done = world.in_layer(textwrap.dedent(script), layer)
        assert (done.code, done.out) == (0, "")
        assert fingerprint(folder) == before
        upper = world.upper(layer)
        assert (upper / "written").read_text() == "new\n"
        assert (upper / "made/file").read_text() == "made\n"
        assert stat.S_ISCHR((upper / "removed").lstat().st_mode)


def test_absolute_paths_stay_true_in_a_layer(world: LayeredWorld) -> None:
    world.write("home/projects/mine/file", "below\n")
    with world.new_layer() as layer:
        done = world.in_layer(f"cat {world.workspace}/file; pwd -P; echo x >{world.workspace}/new", layer)
        assert done.out == f"below\n{world.workspace}\n"
        assert (world.upper(layer) / "new").exists()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_character_in_the_path_of_workspace_or_state_folder_matters(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    world = LayeredWorld(tmp_path / name, state=f"state {name}")
    world.write("home/projects/mine/file", "below\n")
    with world.new_layer() as layer:
        done = world.in_layer("cat file && echo new >file && cat file", layer)
        assert (done.code, done.out) == (0, "below\nnew\n")
        assert (world.upper(layer) / "file").read_text() == "new\n"
    assert (world.workspace / "file").read_text() == "below\n"


def test_one_layer_lies_over_several_roots(world: LayeredWorld) -> None:
    second = world.folder / "second, with: odd \\ name"
    second.mkdir()
    world.roots = (str(world.workspace), str(second))
    with world.new_layer() as layer:
        done = world.in_layer(f'echo 1 >one; echo 2 >"{second}/two"'.replace("\\", "\\\\"), layer)
        assert (done.code, done.out) == (0, "")
        assert [sorted(os.listdir(over.upper)) for over in layer.overlaid] == [["one"], ["two"]]
    assert not os.listdir(second)
    assert not os.listdir(world.workspace)


def test_what_lies_over_a_root_lies_over_the_roots_in_it(world: LayeredWorld) -> None:
    inner = world.workspace / "inner"
    inner.mkdir()
    world.roots = (str(inner), str(world.workspace))
    assert drop_nested_roots(world.roots) == (str(world.workspace),)
    with world.new_layer() as layer:
        assert world.in_layer("echo x >inner/file", layer).code == 0
        assert (world.upper(layer) / "inner/file").exists()
    assert not os.listdir(inner)


def test_layers_lie_on_one_another(world: LayeredWorld) -> None:
    world.write("home/projects/mine/file", "0\n")
    with world.new_layer() as first, world.new_layer(first) as second, world.new_layer(second, first) as third:
        assert world.in_layer("echo 1 >>file; echo x >gone", first).code == 0
        assert world.in_layer("echo 2 >>file; rm gone", second).code == 0
        done = world.in_layer("cat file; ls; echo 3 >>file", third)
        assert done.out == "0\n1\n2\nfile\n"
        assert (world.upper(first) / "file").read_text() == "0\n1\n"
        assert (world.upper(second) / "file").read_text() == "0\n1\n2\n"
    assert (world.workspace / "file").read_text() == "0\n"


def test_the_command_is_who_it_is_without_a_layer(world: LayeredWorld) -> None:
    with world.new_layer() as layer:
        done = world.in_layer("id -u; id -g; grep -E 'Cap(Eff|Bnd)|NoNewPrivs|Seccomp:' /proc/self/status", layer)
    assert done.out == world.run("id -u; id -g; grep -E 'Cap(Eff|Bnd)|NoNewPrivs|Seccomp:' /proc/self/status").out


def test_new_files_get_what_they_get_without_a_layer(world: LayeredWorld) -> None:
    if os.geteuid() == 0:
        os.chown(world.workspace, 1234, 4321)
    world.workspace.chmod(0o2770)
    os.setxattr(world.workspace, "user.note", b"kept")
    look = "echo >made; mkdir sub; stat -c '%u %g %a %n' . made sub; getfattr -n user.note --only-values . 2>&1 || true"
    with world.new_layer() as layer:
        inside = world.in_layer(look, layer).out
        assert os.getxattr(world.upper(layer), "user.note") == b"kept"
    assert inside == world.run(look).out


def test_a_layer_is_not_left_out_where_the_sandbox_has_none(world: LayeredWorld) -> None:
    weaker = CommandSandbox(world.host(), most=0)
    with world.new_layer() as layer, pytest.raises(ToolError, match="Nothing was run"):
        weaker.launch(world.confinement(), "echo x >file", layer)


def test_a_layer_in_a_user_namespace_serves_root_too(world: LayeredWorld) -> None:
    world.write("home/projects/mine/file", "below\n")
    with Overlay(str(world.folder / "state/layers/one"), world.roots, in_user_namespace=True) as layer:
        assert not layer.tracks_hard_links
        assert world.in_layer("cat file; id -u; echo new >file", layer).out == f"below\n{os.geteuid()}\n"
        assert (world.upper(layer) / "file").read_text() == "new\n"


def test_nothing_that_mounts_the_layer_is_left_open_to_the_command(world: LayeredWorld) -> None:
    look = "for one in /proc/[0-9]*/fd/* /proc/[0-9]*/cwd /proc/[0-9]*/root; do readlink $one; done | sort -u"
    without = world.run(look)
    with world.new_layer() as layer:
        done = world.in_layer(look, layer)
        assert os.path.basename(layer.folder) not in done.out
        assert _kinds(done.out) == _kinds(without.out)


def _kinds(listed: str) -> set[str]:
    """Numbers differ from one process to the next."""
    return {"".join(sign for sign in line if not sign.isdigit()) for line in listed.splitlines()}


def test_removal_leaves_nothing_of_what_a_command_closed_or_nested(world: LayeredWorld) -> None:
    script = """
        mkdir -p closed/inner; echo x >closed/inner/file; chmod 000 closed/inner closed; mkdir -m 555 unwritable
        mkdir -m 700 half; echo x >half/file; mkdir half/sub; chmod 500 half; mkfifo pipe; ln -s /nowhere link
        python3 -I -S -c 'import os; [(os.mkdir("a-folder"), os.chdir("a-folder")) for _ in range(1200)]'
    """
    layer = world.new_layer()
    assert world.in_layer(textwrap.dedent(script), layer).code == 0
    layer.remove()
    assert not os.path.exists(layer.folder)
    layer.remove()


def test_removal_follows_no_link(world: LayeredWorld) -> None:
    kept = world.write("outside/kept")
    layer = world.new_layer()
    (world.upper(layer) / "link").symlink_to(kept.parent)
    layer.remove()
    assert kept.exists()
    assert not os.path.exists(layer.folder)


def test_a_layer_that_is_removed_later_is_gone_when_its_sandbox_is_closed(world: LayeredWorld) -> None:
    with world.new_layer() as layer:
        world.in_layer("mkdir -p {1..40}/x", layer)
    world.sandbox.close()
    assert not os.path.exists(layer.folder)


_HOLDING = """
import sys
from handrail.sandbox.overlay.overlay import Overlay
layer = Overlay(sys.argv[1], (sys.argv[2],))
print("made", flush=True)
sys.stdin.read()
"""


def test_layers_of_killed_processes_are_swept_and_those_of_living_ones_are_not(world: LayeredWorld) -> None:
    folder = world.folder / "state/layers"
    words = [sys.executable, "-c", _HOLDING, str(folder / "killed"), str(world.workspace)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"made\n"
        (folder / "killed/upper-0/closed").mkdir(mode=0)
        sweep(str(folder))
        assert os.listdir(folder) == ["killed"]
        process.kill()
    with Overlay(str(folder / "mine"), world.roots):
        sweep(str(folder))
        assert os.listdir(folder) == ["mine"]


def test_a_folder_that_somebody_who_sweeps_took_is_not_used(world: LayeredWorld, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(FileExistsError):
        Overlay(str(tmp_path / "taken"), world.roots)


@pytest.mark.parametrize("name", ["plain", os.fsdecode(b"not \xff utf-8")])
def test_a_layer_that_belongs_to_a_folder_is_found_again_whatever_the_paths(tmp_path: Path, name: str) -> None:
    (tmp_path / name / "owner").mkdir(parents=True)
    world = LayeredWorld(tmp_path / name)
    layer = world.new_layer()
    layer.assign_owner(str(tmp_path / name / "owner"))
    layer.release()
    sweep(os.path.dirname(layer.folder))
    assert is_owned(layer.folder)
    found = Overlay.reclaim(layer.folder)
    assert found is not None
    assert (found.overlaid, found.started) == (layer.overlaid, layer.started)
    found.remove()
