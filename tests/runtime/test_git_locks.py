"""A lock that a call would leave in a repository: it blocks git until it is deleted, so it asks."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail

Rail = Callable[..., Handrail]

LEAVING = {
    "the command names it": ("exec", {"command": "touch .git/index.lock"}),
    "nobody can read the path": ("exec", {"command": "python3 -c \"open('.gi' + 't/refs/heads/main.lock', 'w')\""}),
    "a file tool": ("write", {"path": ".git/HEAD.lock", "content": ""}),
}


@pytest.fixture
def repository(workspace: Path) -> Path:
    subprocess.run(["git", "init", "-qb", "main", workspace], check=True)
    (workspace / "a").write_text("a\n")
    return workspace


def locks(repository: Path) -> list[Path]:
    return list((repository / ".git").rglob("*.lock"))


@pytest.mark.parametrize(("tool", "arguments"), LEAVING.values(), ids=LEAVING)
def test_a_call_that_leaves_a_lock_asks_in_auto(
    rail: Rail, repository: Path, tool: str, arguments: dict[str, str]
) -> None:
    result = rail(mode="auto").call(tool, arguments)
    assert result.error
    assert result.error.code == "PERMISSION_REQUIRED"
    assert result.error.details["rule"] == "fs.lock"
    assert "blocks git" in result.error.details["reason"]
    assert locks(repository) == []


def test_everyday_work_and_removing_a_lock_do_not_ask(rail: Rail, repository: Path) -> None:
    one = rail(mode="auto")
    committed = one.exec("git add a && git -c user.name=A -c user.email=a@b commit -qm first")
    assert committed.error is None
    assert committed.data.exit_code == 0
    (repository / ".git" / "index.lock").touch()
    (repository / "poetry.lock").touch()
    assert one.exec("rm -f .git/index.lock; echo x > poetry.lock; echo y > new.lock").error is None
    assert locks(repository) == []


def test_it_does_not_ask_in_full(rail: Rail, repository: Path) -> None:
    assert rail(mode="full").exec("touch .git/index.lock").error is None
    assert len(locks(repository)) == 1
