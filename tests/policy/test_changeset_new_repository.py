"""A new repository is an ordinary change, unless it steers git."""

import subprocess
from pathlib import Path

import pytest

from handrail.policy.changeset import is_new_object, list_new_repositories
from handrail.protocol.changes import Action, Change, Kind

CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
HASH = "0123456789abcdef0123456789abcdef01234567"


def made(path: str, kind: Kind = "file", action: Action = "created") -> Change:
    return Change(path=path, action=action, kind=kind)


def folder(*names: str, base: str = "") -> tuple[Change, ...]:
    changes = (made(f"{base}.git", "folder"), made(f"{base}.git/HEAD"), made(f"{base}.git/config"))
    return (*changes, *(made(f"{base}.git/{name}") for name in names))


@pytest.mark.parametrize("base", ["", "sub/", "/data/x/"])
def test_a_new_repository_is_found_wherever_it_is(base: str) -> None:
    changes = folder("hooks/pre-commit.sample", "description", "info/exclude", "refs/heads/a/b", base=base)
    assert list_new_repositories(changes, {f"{base}.git/config": CONFIG}) == (f"{base}.git",)


HOSTILE = [
    "hooks/pre-commit", "Hooks/pre-commit", "hooks/x.sample/y", "hooks/.sample", "hooks/a.SAMPLE", "config.worktree",
    "commondir", "gitdir", "modules/x/config", "worktrees/x/gitdir", "objects/info/alternates", "info/attributes",
    "info/grafts", "info/sparse-checkout", "rebase-merge/git-rebase-todo", "sequencer/todo", "remotes/origin",
    "branches/x", "config.lock", "config.", "refs/heads/../../hooks/pre-commit", "refs/heads", "FETCH_HEAD",
    "MERGE_HEAD", ".git/config", "index\nhooks", "refs/heads/.git/config", "refs/heads/a/.git/hooks/x", "refs/tags//x",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_new_repository_with_anything_else_in_it_is_not_ordinary(name: str) -> None:
    assert list_new_repositories(folder(name), {".git/config": CONFIG}) == ()


def test_links_and_changed_files_make_it_something_else() -> None:
    configs = {".git/config": CONFIG}
    assert list_new_repositories((*folder(), made(".git/index", "link")), configs) == ()
    assert list_new_repositories((*folder(), made(".git/objects", "link")), configs) == ()
    assert list_new_repositories((*folder(), made(".git/index", action="modified")), configs) == ()
    assert list_new_repositories((*folder(), made(".git/hooks/x", action="deleted")), configs) == ()
    assert list_new_repositories((*folder(), made(".git/hooks/pre-commit", "folder")), configs) == ()
    assert list_new_repositories((*folder(), made(".git/hooks", "folder")), configs) == (".git",)
    assert list_new_repositories((made(".git", "folder", "deleted"), *folder()), configs) == ()


def test_without_its_folder_or_its_configuration_it_is_not_new() -> None:
    assert list_new_repositories(folder()[1:], {".git/config": CONFIG}) == ()
    assert list_new_repositories(folder(), {}) == ()
    assert list_new_repositories(folder(), {".git/config": CONFIG + "\thooksPath = x\n"}) == ()
    assert list_new_repositories((made(".git"), *folder()[1:]), {".git/config": CONFIG}) == ()
    assert list_new_repositories((made("x.git", "folder"), made("x.git/config")), {"x.git/config": CONFIG}) == ()


def test_of_several_each_is_looked_at_on_its_own() -> None:
    changes = (*folder(base="a/"), *folder("hooks/pre-commit", base="b/"), *folder(base="a/.git-x/"))
    configs = {change.path: CONFIG for change in changes if change.path.endswith("config")}
    assert list_new_repositories(changes, configs) == ("a/.git", "a/.git-x/.git")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f".git/objects/ab/{HASH[2:]}", "file"),
        (".git/objects/ab", "folder"),
        (f"sub/.git/objects/pack/pack-{HASH}.idx", "file"),
    ],
)
def test_a_new_object_is_ordinary_in_any_repository(path: str, kind: Kind) -> None:
    assert is_new_object(made(path, kind))
    assert not is_new_object(made(path, kind, "modified"))
    assert not is_new_object(made(path, kind, "deleted"))
    assert not is_new_object(made(path, "link"))


@pytest.mark.parametrize(
    "path", [".git/objects/info/alternates", f".git/objects/ab/{HASH[2:]}.x", f"objects/ab/{HASH[2:]}", ".git/objects"]
)
def test_what_is_no_object(path: str) -> None:
    assert not is_new_object(made(path))


@pytest.mark.parametrize("steps", [["init"], ["init -b main", "add .", "commit -q -m x --no-gpg-sign", "tag v1"]])
def test_what_git_makes_is_ordinary_and_what_it_makes_with_more_is_not(tmp_path: Path, steps: list[str]) -> None:
    (tmp_path / "a.txt").write_text("a")
    for step in steps:
        git(tmp_path, *step.split())
    assert found(tmp_path) == (".git",)
    git(tmp_path, "config", "core.hooksPath", "hooks")
    assert found(tmp_path) == ()


def test_a_clone_is_ordinary_and_one_that_steers_git_is_not(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    git(tmp_path / "one", "init", "-q", "-b", "main")
    git(tmp_path / "one", "commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", "x")
    git(tmp_path / "two", "clone", "-q", str(tmp_path / "one"), ".")
    assert found(tmp_path / "two") == (".git",)
    git(tmp_path / "two", "config", "remote.origin.url", "ext::sh -c x")
    assert found(tmp_path / "two") == ()
    git(tmp_path / "two", "config", "remote.origin.url", "https://example.org/x.git")
    assert found(tmp_path / "two") == (".git",)
    git(tmp_path / "two", "config", "remote.origin.uploadpack", "x")
    assert found(tmp_path / "two") == ()


def git(where: Path, *arguments: str) -> None:
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    clean = {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", *arguments], cwd=where, env={**clean, **names}, check=True, capture_output=True)


def found(where: Path) -> tuple[str, ...]:
    paths = [where / ".git", *(where / ".git").rglob("*")]
    changes = tuple(made(str(path.relative_to(where)), "folder" if path.is_dir() else "file") for path in paths)
    return list_new_repositories(changes, {".git/config": (where / ".git/config").read_text()})
