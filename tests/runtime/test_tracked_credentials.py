"""A credential that git tracks: no command that nobody was asked about prints it, and git is not misled about it."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail

Rail = Callable[..., Handrail]

PRINTS = "python3 -c \"print(open('.e' + 'nv').read()); print(open('.a' + 'ws/config').read())\""
COMMITS = "python3 -c \"import subprocess as s; s.run(['git', 'commit', '-qam', 'x'], check=True)\""


def git(workspace: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words],
        cwd=workspace, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


@pytest.fixture
def tracked(workspace: Path) -> Path:
    """A workspace whose repository has credentials in it."""
    git(workspace, "init", "-q")
    (workspace / ".aws").mkdir()
    for name in (".env", ".aws/config"):
        (workspace / name).write_text("TOKEN=hunter2\n")
    (workspace / "a").write_text("a\n")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "first")
    git(workspace, "config", "user.name", "A")
    git(workspace, "config", "user.email", "a@example.org")
    return workspace


def preview(rail: Handrail, command: str) -> dict[str, Any]:
    result = rail.exec(command)
    assert result.error
    assert result.error.code == "PERMISSION_REQUIRED", result
    return result.error.details["preview"]


@pytest.mark.usefixtures("tracked")
def test_neither_a_preview_nor_a_command_that_auto_runs_prints_it(rail: Rail) -> None:
    shown = preview(rail(mode="ask", session="ask"), PRINTS)
    assert (shown["kind"], "No such file" in shown["output"]) == ("run", True)
    assert "hunter2" not in str(shown)
    result = rail(mode="auto").exec(PRINTS)
    assert "hunter2" not in f"{result.content}{result.error}"


def test_git_alone_sees_it_as_it_is(rail: Rail, tracked: Path) -> None:
    (tracked / "a").write_text("b\n")
    shown = preview(rail(mode="ask", session="ask"), "git add -A && git status --short")
    assert shown["output"] == "M  a\n"
    assert rail(mode="auto").exec("git commit -qam second").error is None
    assert git(tracked, "show", "--format=", "--name-only", "HEAD") == "a\n"
    assert git(tracked, "show", "HEAD:.env") == "TOKEN=hunter2\n"


@pytest.mark.usefixtures("tracked")
@pytest.mark.parametrize("command", [f"git add a; {PRINTS}", f"for x in 1; do git add a; {PRINTS}; done"])
def test_git_beside_another_program_asks_without_a_preview(rail: Rail, command: str) -> None:
    shown = preview(rail(mode="ask"), command)
    assert (shown["kind"], shown.get("output", "")) == ("none", "")
    assert "git, which tracks a credential" in shown["text"]


def test_a_program_that_commits_by_itself_does_not_commit_the_empty_file(rail: Rail, tracked: Path) -> None:
    (tracked / "a").write_text("b\n")
    result = rail(mode="auto").exec(COMMITS)
    assert result.error
    assert result.error.code == "CONFLICT"
    assert "a credential that git tracks was hidden from it" in result.error.message
    assert "its preview failed:" in preview(rail(mode="ask", session="ask"), COMMITS)["text"]
    assert git(tracked, "log", "--format=%s") == "first\n"
    assert git(tracked, "status", "--short") == " M a\n"


def test_what_is_not_tracked_does_not_change_what_git_may_do(rail: Rail, workspace: Path) -> None:
    git(workspace, "init", "-q")
    (workspace / ".gitignore").write_text(".env\n")
    (workspace / ".env").write_text("TOKEN=hunter2\n")
    shown = preview(rail(mode="ask"), "git add -A; python3 -c 'print(1)'")
    assert shown["output"] == "1\n"
