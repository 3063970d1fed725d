"""What tests of the file tools share: other users, small disks, processes that change files meanwhile."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail import Handrail

NOBODY = 65534
# Imports come first: where the code lies, the user may have no right to look.
SCRIPT = """
import base64, difflib, hashlib, json, os, queue, sys
import handrail.tools.edit, handrail.tools.find, handrail.tools.grep, handrail.tools.file_commit
import handrail.tools.ls, handrail.tools.edit, handrail.tools.write, traceback
import handrail.changes.recovery, handrail.store.change_log, handrail.workspace.search.ripgrep
import handrail.workspace.sensitive_paths
from handrail import Handrail
from handrail.settings import Settings
folder, who = sys.argv[1], int(sys.argv[2])
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(who), os.setuid(who)
with Handrail(f"{folder}/workspace", mode="auto", state_dir=f"{folder}/state", settings=Settings()) as rail:
    for name, args in json.load(sys.stdin):
        result = rail.call(name, args)
        print(json.dumps([result.ok, result.error and result.error.code, result.content, result.warnings]))
"""

Calls = list[tuple[str, dict[str, object]]]
Plain = tuple[bool, str | None, str]
Warned = tuple[bool, str | None, str, list[str]]


@pytest.fixture
def one(rail: Callable[..., Handrail]) -> Handrail:
    """A Handrail as most people have it."""
    return rail()


@pytest.fixture
def common_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach and owns, with a workspace in it."""
    path = Path(tempfile.mkdtemp(prefix="handrail-"))
    (path / "workspace").mkdir()
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
        os.chown(path / "workspace", NOBODY, NOBODY)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def as_ordinary_user(warned_as_ordinary_user: Callable[[Calls], list[Warned]]) -> Callable[[Calls], list[Plain]]:
    """Runs calls over common_folder in another process, without root's power to ignore modes."""
    return lambda calls: [(ok, code, content) for ok, code, content, _ in warned_as_ordinary_user(calls)]


@pytest.fixture
def warned_as_ordinary_user(common_folder: Path) -> Callable[[Calls], list[Warned]]:
    """The same, with the warnings."""

    def run(calls: Calls) -> list[Warned]:
        source = str(Path(sys.modules["handrail"].__file__ or "").parent.parent)
        command = [sys.executable, "-c", SCRIPT, str(common_folder), str(NOBODY)]
        environment = {"PYTHONPATH": source, "PATH": str(common_folder / "bin")}
        done = subprocess.run(
            command, input=json.dumps(calls), env=environment, cwd="/", text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return [tuple(json.loads(line)) for line in done.stdout.splitlines()]

    return run


@pytest.fixture
def small_disk(workspace: Path) -> Iterator[Path]:
    """A folder of the workspace on a disk of 256 KB."""
    folder = workspace / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("mounting a small disk takes root")
    mounted = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


Meanwhile = Callable[..., "contextmanager[None]"]


@pytest.fixture
def meanwhile() -> Callable[..., object]:
    """Runs Python statements over and over in another process for as long as a block lasts."""

    @contextmanager
    def running(statements: str, *arguments: object) -> Iterator[None]:
        body = "\n".join(f"    {line}" for line in statements.splitlines())
        code = f"""
import os, sys, threading
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
turn = 0
while not over.is_set():
    turn += 1
    if turn == 3:  # it is really running, however busy the machine is
        print("ready", flush=True)
{body}
print(turn)
"""
        command = [sys.executable, "-c", code, *map(str, arguments)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            try:
                yield
            finally:
                turns, _ = other.communicate(timeout=60)
        assert other.returncode == 0
        assert int(turns) > 1, "the other process did nothing"

    return running


@pytest.fixture
def joined() -> Callable[..., str]:
    """Reads a path page by page until there is no next one."""

    def read_all(rail: Handrail, path: str, limits: Iterator[int] | None = None, offset: int = 1) -> str:
        pages: list[str] = []
        at: int | None = offset
        while at is not None:
            result = rail.read(path, offset=at, limit=next(limits) if limits else 2_000)
            assert result.ok, result.error
            pages.append(result.content)
            at = result.meta.next_offset
        return "".join(pages)

    return read_all
