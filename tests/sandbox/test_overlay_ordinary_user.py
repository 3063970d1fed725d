"""Layers of an ordinary user: the same tests as for root, run by one; and what belongs to others."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.escape.starting import ordinary_number, python_for
from tests.sandbox.overlays import WHY_NOT

from handrail.sandbox.overlay.overlay import list_overlay_hints

_REPOSITORY = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else"),
]

_IN_LAYER = """
import sys
from pathlib import Path
from tests.sandbox.overlays import LayeredWorld
world = LayeredWorld(Path(sys.argv[1]))
with world.new_layer() as layer:
    print(world.in_layer(sys.argv[2], layer).out)
"""
_WHY_NOT = """
import os, sys
from handrail.settings import Settings
from handrail.tools.command_environment import CommandEnvironment
from handrail.workspace.roots import Root
commands = CommandEnvironment(Settings(), sys.argv[1] + "/state", dict(os.environ))
print(commands.find_overlay_obstacle((Root(sys.argv[1] + "/home/projects/mine"),)))
"""


class Somebody:
    """An ordinary user with a folder."""

    def __init__(self, folder: Path) -> None:
        self.number = ordinary_number()
        self.python = python_for(self.number)
        if not self.python:
            pytest.skip("no Python with our libraries can be run by an ordinary user here")
        self.folder = folder
        self.workspace = folder / "home/projects/mine"
        self.workspace.mkdir(parents=True)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.number, self.number)

    def runs(self, *words: str) -> "subprocess.CompletedProcess[str]":
        paths = [str(_REPOSITORY), str(_REPOSITORY / "src"), *(path for path in sys.path if "site-packages" in path)]
        return subprocess.run(
            [self.python, *words],
            user=self.number,
            group=self.number,
            extra_groups=[],
            cwd=_REPOSITORY,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@pytest.fixture
def somebody() -> Iterator[Somebody]:
    folder = Path(tempfile.mkdtemp(prefix="handrail-layers-", dir="/tmp"))
    folder.chmod(0o755)
    yield Somebody(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["test_overlay.py", "test_overlay_pool.py", "test_overlay_whiteouts.py"])
def test_layers_of_an_ordinary_user_hold_as_those_of_root_do(somebody: Somebody, name: str) -> None:
    check(somebody, f"tests/sandbox/{name}")


@pytest.mark.parametrize(
    "name", ["process/test_tree_orphans.py", "tools/test_exec_hidden_files.py", "tools/test_exec_session_network.py"]
)
def test_commands_of_an_ordinary_user_begin_and_end_as_those_of_root_do(somebody: Somebody, name: str) -> None:
    check(somebody, f"tests/{name}")


_IN_ANOTHER_ROOT = """
import sys
from pathlib import Path
from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Paths
home = Path(sys.argv[1], "home")
other = home / "other"
other.mkdir()
settings = Settings(mode="auto", paths=Paths(writable=(str(other),)))
with Handrail(home / "projects/mine", state_dir=home / "state", settings=settings) as rail:
    done = rail.exec(f"echo new > {other}/a && echo here > b")
    print(done.ok, sorted(done.artifacts.files_changed)[1:], (other / "a").read_text().strip())
    print(rail.undo().ok, (other / "a").exists())
"""


def test_a_command_of_an_ordinary_user_changes_another_writable_root_and_that_is_taken_back(somebody: Somebody) -> None:
    done = somebody.runs("-c", _IN_ANOTHER_ROOT, str(somebody.folder))
    assert (done.stdout, done.returncode) == ("True ['b'] new\nTrue False\n", 0), done.stderr


def check(somebody: Somebody, tests: str) -> None:
    options = ("-q", "-x", "-p", "no:cacheprovider", "--basetemp", str(somebody.folder / "base"))
    done = somebody.runs("-m", "pytest", *options, tests)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_file_of_another_user_cannot_be_changed_in_a_layer_only_replaced_and_that_is_told(somebody: Somebody) -> None:
    theirs = somebody.workspace / "theirs"
    theirs.write_text("theirs\n")
    theirs.chmod(0o666)
    changing = "echo x >>theirs; echo mine >new && mv -f new theirs && echo replaced: $(cat theirs)"
    done = somebody.runs("-c", _IN_LAYER, str(somebody.folder), changing)
    assert done.returncode == 0, done.stderr
    assert "replaced: mine" in done.stdout
    assert "cannot change a file or folder that belongs to another user or group" in list_overlay_hints(done.stdout)[0]
    assert theirs.read_text() == "theirs\n"


@pytest.mark.parametrize(
    ("owner", "group", "mode", "expected"),
    [
        (None, 0, 0o2775, "another user or group"),
        (0, None, 0o775, "another user or group"),
        (0, 0, 0o777, "another user or group"),
        (0, 0, 0o755, "None"),  # nothing in it could be changed without a layer either
        (0, 0, 0o700, "None"),
        (None, None, 0o755, "None"),
    ],
)
def test_a_folder_of_others_that_can_be_written_to_keeps_the_workspace_from_a_layer(
    somebody: Somebody, owner: int | None, group: int | None, mode: int, expected: str
) -> None:
    shared = somebody.workspace / "shared"
    shared.mkdir()
    os.chown(shared, somebody.number if owner is None else owner, somebody.number if group is None else group)
    shared.chmod(mode)
    done = somebody.runs("-c", _WHY_NOT, str(somebody.folder))
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert expected == "None" or str(shared) in done.stdout


def test_doctor_says_that_a_folder_of_others_keeps_the_workspace_from_a_layer_and_what_would_help(
    somebody: Somebody,
) -> None:
    looking = (
        f"import os; os.chdir({str(somebody.workspace)!r}); os.environ['HOME'] = {str(somebody.folder / 'home')!r}; "
        "from handrail.cli.main import main; main()"
    )
    assert " in an overlay over the workspace\n" in somebody.runs("-c", looking, "doctor").stdout
    shared = somebody.workspace / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    told = somebody.runs("-c", looking, "doctor").stdout
    assert "  ⚠ tier 3 has no overlay here: ~/projects/mine/shared belongs to another user or group" in told
    assert f"      → sudo chown -R {somebody.number}:{somebody.number} ~/projects/mine/shared\n" in told
