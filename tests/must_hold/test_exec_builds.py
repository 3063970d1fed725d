"""Real work goes on in the sandbox: builds and tests of small projects with the tools people have, without a network.

Who has to switch the sandbox off to get work done has none.
"""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Sandbox

SAMPLES = Path(__file__).with_name("samples")
COMMANDER = Path(__file__).parent.parent / "commander.py"
NOBODY = 65534
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
MILLISECONDS = 300_000


class Build(NamedTuple):
    """A project, what builds it, and a line that is printed only when all went well."""

    sample: str | None
    programs: tuple[str, ...]
    command: str
    says: str


GIT = """
git init --quiet --initial-branch=main . && git config user.name A && git config user.email a@b.c &&
echo one > a && git add a && git commit --quiet -m one && git switch --quiet -c side && echo side > b && git add b &&
git commit --quiet -m side && git switch --quiet main && echo two > a && git commit --quiet -am two &&
git merge --quiet --no-edit side && echo three > a && git stash --quiet && git stash pop --quiet && git gc --quiet &&
git fsck --strict && git worktree add --quiet wt side && git status --short && git log --oneline --graph && cat b
"""
EVERY_DAY = {"git", "servers", "terminal"}
"""What is also tried for an ordinary user; the rest only in a deep run."""
BUILDS = {
    "make": Build("make_c", ("make", "gcc"), "make check", "all is well"),
    "make with jobs": Build("make_c", ("make", "gcc"), "make -j4 check", "all is well"),
    "git": Build(None, ("git",), GIT, "\nside\n"),
    "pip": Build(
        "pip_package",
        ("python3",),
        "python3 -m venv venv && venv/bin/pip install --no-index --no-build-isolation . && venv/bin/greet",
        "hello from a wheel",
    ),
    "npm": Build(
        "npm_project",
        ("npm", "node"),
        "npm install --offline --no-audit --no-fund && npm run build && npm test && cat dist/count.txt",
        "# pass 1",
    ),
    "node": Build("scripts", ("node",), "node workers.js", "worker 42 child"),
    "cargo": Build("cargo_project", ("cargo",), "cargo build && cargo test && cargo run --quiet", "\n42\n"),
    "go": Build("go_project", ("go",), "go vet . && go test . && go build -o sample . && ./sample", "42"),
    "java": Build("java_project", ("javac", "java"), "javac -d out Sample.java && java -cp out Sample", "sum 5050"),
    "uv": Build(
        "pip_package", ("uv",), "uv venv --offline venv && "
        "uv pip install --python venv --offline --no-build-isolation . && venv/bin/greet", "hello from a wheel",
    ),
    "sanitizer": Build(
        "sanitizer", ("gcc",), "gcc -g -fsanitize=address,undefined -o checked checked.c && ./checked && "
        "if ./checked bad 2> report; then exit 9; fi; grep heap-buffer-overflow report", "heap-buffer-overflow",
    ),
    "multiprocessing": Build("scripts", ("python3",), "python3 many.py", "squares 285\nqueued\nshared\n"),
    "servers": Build("scripts", ("python3",), "python3 loopback.py", "served by TCP\nserved by a file\n"),
    "terminal": Build("scripts", ("python3",), "python3 terminal.py", "terminal /dev/pts/"),
    "database": Build("scripts", ("python3",), "python3 database.py", "rows 100"),
    "job control": Build(
        None, (), "set -m; sleep 300 & sleep 301 & jobs -r | wc -l; kill %1 %2; wait; echo over", "over",
    ),
    "a shell's files": Build(
        None, (), "cat <(echo one) <(echo two) > joined; cat joined; cat <<< here; mktemp > name; echo x > $(cat name);"
        " cat $(cat name); flock lock echo locked", "one\ntwo\nhere\nx\nlocked\n",
    ),
    "who and where": Build(
        None, (), 'test "$(id -un)" = "$USER"; test "$PWD" = "$(pwd -P)"; test -w "$HOME"; test -w "$TMPDIR"; '
        'getent hosts localhost > /dev/null; test "$(nproc)" -gt 0; ps -e > /dev/null; df . > /dev/null; '
        'test -c /dev/null; test -r /dev/urandom; date > /dev/null; echo "gr\u00fc\u00df"', "gr\u00fc\u00df",
    ),
}  # fmt: skip


NAMES = list(BUILDS)


def prepared(build: Build, workspace: Path) -> None:
    if build.sample is not None:
        shutil.copytree(SAMPLES / build.sample, workspace, dirs_exist_ok=True)


def need(programs: tuple[str, ...], path: str | None = None) -> None:
    missing = [program for program in programs if shutil.which(program, path=path) is None]
    if missing:
        pytest.skip(f"not on PATH: {', '.join(missing)}")


@pytest.fixture
def one(rail: Callable[..., Handrail]) -> Handrail:
    return rail(mode="full", settings=Settings(sandbox=Sandbox(tier=2, least=2)))


@pytest.mark.parametrize("name", NAMES)
def test_it_builds_in_the_sandbox(name: str, one: Handrail, workspace: Path) -> None:
    build = BUILDS[name]
    need(build.programs)
    prepared(build, workspace)
    result = one.call("exec", {"command": f"set -e\n{build.command}", "timeoutMs": MILLISECONDS})
    assert result.ok, result.error
    assert result.data.exit_code == 0, result.content
    assert build.says in result.content
    assert result.meta.sandbox is not None
    assert result.meta.sandbox.tier == 2


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder of an ordinary user, with a home and a workspace."""
    folder = Path(tempfile.mkdtemp(prefix="handrail-"))
    (folder / "workspace").mkdir()
    (folder / "home").mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", NAMES)
def test_it_builds_for_an_ordinary_user(name: str, common: Path, deep: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("this user is one")
    if name not in EVERY_DAY and not deep:
        pytest.skip("in a deep run")
    build = BUILDS[name]
    need(build.programs, SYSTEM_PATH)
    prepared(build, common / "workspace")
    result = as_ordinary_user(common, f"set -e\n{build.command}")
    assert result["ok"], result["error"]
    assert result["data"]["exitCode"] == 0, result["content"]
    assert build.says in result["content"]
    assert result["meta"]["sandbox"]["tier"] == 2


def as_ordinary_user(folder: Path, command: str) -> dict[str, Any]:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    task = {
        "workspace": str(folder / "workspace"), "state": str(folder / "state"), "user": NOBODY,
        "settings": {"sandbox": {"tier": 2, "least": 2}},
        "calls": [{"command": command, "timeoutMs": MILLISECONDS}],
    }  # fmt: skip
    source = str(Path(sys.modules["handrail"].__file__ or "").parent.parent)
    environment = {"PYTHONPATH": source, "PATH": SYSTEM_PATH, "HOME": str(folder / "home"), "USER": "nobody"}
    command_line = [sys.executable, str(COMMANDER), json.dumps(task)]
    done = subprocess.run(command_line, env=environment, cwd="/", text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_commit_is_by_the_person(
    rail: Callable[..., Handrail], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their settings of git are in their home, which commands do not see."""
    need(("git",))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    one = rail(mode="full", settings=Settings(sandbox=Sandbox(tier=2, least=2)))
    result = one.exec("git init -q . && git commit -q --allow-empty -m first && git log --format='%an <%ae>'")
    assert result.ok, result.error
    assert result.data.output == "Ada <ada@example.org>\n"


def test_pytest_runs_the_tests_of_a_project(one: Handrail, workspace: Path) -> None:
    shutil.copytree(SAMPLES / "pytest_project", workspace, dirs_exist_ok=True)
    for distribution in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        install(distribution, workspace / "packages")
    python = Path(sys.executable).resolve()
    command = f"PYTHONPATH=packages {python} -m pytest -q checks.py"
    result = one.call("exec", {"command": command, "timeoutMs": MILLISECONDS})
    assert result.ok, result.error
    assert "4 passed" in result.content


def install(distribution: str, folder: Path) -> None:
    """Copies what this Python has installed: the sandbox shows no virtual environment but the project's own."""
    for file in importlib.metadata.files(distribution) or ():
        target = folder / file
        if ".." not in file.parts and "__pycache__" not in file.parts:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), target)
