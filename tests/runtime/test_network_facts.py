"""Where the hosts of git commands come from: the files of repositories in the roots, and no others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.protocol.decisions import CommandFact
from handrail.runtime.facts import collect_command_facts
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

ORIGIN = '[remote "origin"]\n\turl = https://{}/a.git\n'


@pytest.fixture
def place(workspace: Path, tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "extra").mkdir()
    with Workspace(str(workspace), Root(str(tmp_path / "extra"), writable=False)) as opened:
        yield opened


def repository(folder: Path, host: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(ORIGIN.format(host))
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def fact(place: Workspace, text: str, cwd: str = ".") -> CommandFact:
    found = collect_command_facts(place, text, cwd, tier=2).command
    assert found is not None
    return found


def test_a_remote_is_looked_up_in_the_repository_around(place: Workspace, workspace: Path, tmp_path: Path) -> None:
    repository(workspace, "example.org")
    (workspace / "a" / "b").mkdir(parents=True)
    repository(tmp_path / "extra" / "x", "extra.example.org")
    (tmp_path / "extra" / "x" / "deep").mkdir()
    assert fact(place, "git push").hosts == ("example.org:443",)
    assert fact(place, "git fetch origin", "a/b").hosts == ("example.org:443",)
    assert fact(place, "cd a && git pull").hosts == ("example.org:443",)
    assert fact(place, f"git -C {tmp_path}/extra/x/deep fetch").hosts == ("extra.example.org:443",)
    assert fact(place, "git status").hosts == ()


def test_branches_and_submodules_have_their_own(place: Workspace, workspace: Path) -> None:
    repository(workspace, "example.org")
    with (workspace / ".git" / "config").open("a") as config:
        config.write('[remote "fork"] url = git@fork.example.org:a.git\n[branch "topic"] remote = fork\n')
    (workspace / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    (workspace / ".gitmodules").write_text('[submodule "lib"] url = https://lib.example.org/lib.git\n')
    found = fact(place, "git fetch")
    assert (found.hosts, found.unopened) == ((), ("fork.example.org:22 by ssh, which the proxy does not support",))
    assert fact(place, "git submodule update --init").hosts == ("lib.example.org:443",)


def test_a_worktree_has_the_remotes_of_its_repository(place: Workspace, workspace: Path) -> None:
    repository(workspace / "main", "example.org")
    (workspace / "main" / ".git" / "worktrees" / "w").mkdir(parents=True)
    (workspace / "main" / ".git" / "worktrees" / "w" / "commondir").write_text("../..\n")
    (workspace / "w").mkdir()
    (workspace / "w" / ".git").write_text(f"gitdir: {workspace}/main/.git/worktrees/w\n")
    assert fact(place, "git fetch", "w").hosts == ("example.org:443",)


def test_nothing_outside_the_roots_is_read(place: Workspace, workspace: Path, tmp_path: Path) -> None:
    outside = repository(tmp_path / "outside", "outside.example.org")
    repository(tmp_path, "above.example.org")
    assert fact(place, "git push").hosts == ()
    assert fact(place, f"git -C {outside} push").hosts == ()
    assert fact(place, f"git -C {'x' * 5_000} push").hosts == ()
    (workspace / "link").mkdir()
    (workspace / "link" / ".git").symlink_to(outside / ".git")
    (workspace / "file").mkdir()
    (workspace / "file" / ".git").write_text(f"gitdir: {outside}/.git\n")
    (workspace / "odd").mkdir()
    (workspace / "odd" / ".git").mkdir()
    (workspace / "odd" / ".git" / "config").symlink_to(outside / ".git" / "config")
    for cwd in ("link", "file", "odd"):
        assert fact(place, "git push", cwd).hosts == ()


def test_a_pipe_in_the_place_of_the_configuration_holds_nobody_up(place: Workspace, workspace: Path) -> None:
    import os

    (workspace / ".git").mkdir()
    os.mkfifo(workspace / ".git" / "config")
    assert fact(place, "git push").hosts == ()
