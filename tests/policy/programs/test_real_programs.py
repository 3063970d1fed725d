"""Proven examples run in bubblewrap and change nothing."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.policy.programs.support import TABLES, command

from handrail.policy.shell.syntax import Script, to_bash

BWRAP = shutil.which("bwrap") or ""
PROVEN = sorted({text for table in TABLES if table.effect == "proven" for text in table.match})
FILES = ("src/a.py", "tests/b.py", "a", "b", "a.txt", "b.txt", "a.json", "a.yaml", "c.json", "patterns", "x")
SANDBOX = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-all")
# As commands that are proven are run: git then takes no lock to write down what it found out on the way.
DRIVER = """
export GIT_OPTIONAL_LOCKS=0
while IFS= read -r line; do
  timeout 5 bash --noprofile --norc -c "$line" </dev/null >/dev/null 2>&1
done </tmp/commands
exit 0
"""

needs_bubblewrap = pytest.mark.skipif(not BWRAP, reason="there is no bubblewrap here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the examples name, and a repository."""
    place = tmp_path / "folder"
    for name in FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text('{"a": 1}\n')
    subprocess.run(["git", "init", "--quiet", str(place)], check=True)
    return place


def snapshot(folder: Path) -> dict[str, str]:
    """Every path with its mode, times and content."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = f"{status.st_mode} {status.st_mtime_ns} {content}"
    return found


def run_all(folder: Path, texts: list[str]) -> None:
    """Runs commands as they would be run when proven, one after the other; the folder may be written to."""
    commands = folder.parent / "commands"
    commands.write_text("".join(f"{to_bash(Script((command(text),)))}\n" for text in texts))
    places = ("--bind", str(folder), "/tmp/folder", "--ro-bind", str(commands), "/tmp/commands")
    subprocess.run([BWRAP, *SANDBOX, *places, "--chdir", "/tmp/folder", "bash", "-c", DRIVER], check=True)


@needs_bubblewrap
def test_no_proven_example_changes_anything(folder: Path, deep: bool) -> None:
    before = snapshot(folder)
    run_all(folder, PROVEN if deep else PROVEN[::10])
    assert snapshot(folder) == before


@needs_bubblewrap
@pytest.mark.parametrize("text", ["sort -o a.txt b.txt", "uniq a.txt c.txt", "xxd a x", "find . -name a.txt -delete"])
def test_what_is_not_proven_would_have_been_seen(folder: Path, text: str) -> None:
    (folder / "b.txt").write_text("b\na\n")
    before = snapshot(folder)
    run_all(folder, [text])
    assert snapshot(folder) != before
