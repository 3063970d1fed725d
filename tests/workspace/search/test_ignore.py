"""What find and grep pass over: the same rules for both, and nothing from above the root."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail

Rail = Callable[..., Handrail]


@pytest.fixture
def files(rail: Rail, workspace: Path) -> Callable[..., list[str]]:
    """The files that find lists and grep searches: they must agree."""
    one = rail()

    def listed(path: str = ".") -> list[str]:
        found = list(one.find("*", path).data.files)
        searched = one.grep("^", path, max_results=10_000).data.matches
        assert sorted({match.path for match in searched}) == sorted(found)
        # For a name, ripgrep runs differently.
        names = {name for _, _, names in os.walk(workspace / path) for name in names}
        assert sorted({file for name in names for file in one.find(name, path).data.files}) == sorted(found)
        return [name for name in found if "ignore" not in name]

    return listed


def tree(workspace: Path, **texts: str) -> None:
    """Files by their paths, in which __ stands for a slash; one that is called ignore is a .gitignore."""
    for name, text in texts.items():
        path = workspace / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person without ignore files of their own."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


def test_gitignore_holds_without_a_repository_and_nested_ones_add_to_it(files, workspace: Path) -> None:
    tree(workspace, a_log="x", b="x", sub__a_log="x", sub__c="x", sub__deep__c="x", sub__keep__a_log="x")
    (workspace / ".gitignore").write_text("*_log\n/b\n")
    (workspace / "sub" / ".gitignore").write_text("/c\n!keep/a_log\n")
    assert files() == ["sub/deep/c", "sub/keep/a_log"]


def test_ignore_and_rgignore_go_over_gitignore(files, workspace: Path) -> None:
    tree(workspace, a="x", b="x", c="x", d="x")
    (workspace / ".gitignore").write_text("a\nb\n")
    (workspace / ".ignore").write_text("!a\nc\n")
    (workspace / ".rgignore").write_text("!c\nd\n")
    assert files() == ["a", "c"]


def test_git_info_exclude_holds(files, workspace: Path) -> None:
    tree(workspace, a="x", b="x")
    (workspace / ".git" / "info").mkdir(parents=True)
    (workspace / ".git" / "info" / "exclude").write_text("a\n")
    assert files() == ["b"]


def test_the_persons_own_git_ignore_file_holds(files, workspace: Path, home: Path) -> None:
    tree(workspace, a="x", b="x")
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("a\n")
    assert files() == ["b"]


def test_ignore_files_above_the_root_are_not_read(files, workspace: Path) -> None:
    tree(workspace, a="x", sub__b="x")
    for name in (".gitignore", ".ignore", ".rgignore"):
        (workspace.parent / name).write_text("a\nb\nworkspace\n")
    assert files() == ["a", "sub/b"]
    assert files("sub") == ["sub/b"]


def test_ignore_files_between_the_root_and_the_folder_count(files, workspace: Path) -> None:
    tree(workspace, sub__a_log="x", sub__b="x", sub__gen__c="x", sub__deep__gen__d="x", sub__deep__a_log="x")
    (workspace / ".gitignore").write_text("*_log\n/sub/gen\n")
    (workspace / "sub" / "deep" / ".gitignore").write_text("!a_log\n")
    assert files("sub") == ["sub/b", "sub/deep/a_log", "sub/deep/gen/d"]


def test_an_ignored_folder_that_is_named_is_searched_by_what_is_inside_it(files, workspace: Path) -> None:
    tree(workspace, target__a="x", target__b="x", target__deep__c="x")
    (workspace / ".gitignore").write_text("target/\n")
    (workspace / "target" / ".gitignore").write_text("b\n")
    assert files() == []
    assert files("target") == ["target/a", "target/deep/c"]
    assert files("target/deep") == ["target/deep/c"]


def test_the_built_in_folders_are_passed_over_whatever_an_ignore_file_says(files, workspace: Path) -> None:
    tree(workspace, node_modules__a="x", src__dist__b="x", c="x")
    (workspace / ".ignore").write_text("!node_modules\n!dist\n")
    assert files() == ["c"]
    assert files("node_modules") == ["node_modules/a"]


def test_links_are_neither_followed_nor_listed(files, workspace: Path, tmp_path: Path) -> None:
    tree(workspace, real__a="x")
    os.symlink("real", workspace / "link")
    os.symlink("real/a", workspace / "b")
    assert files() == ["real/a"]


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore"])
def test_an_ignore_file_that_is_a_link_is_not_followed(files, workspace: Path, tmp_path: Path, name: str) -> None:
    """What is left out would tell, name by name, which lines the other file has."""
    (tmp_path / "outside").write_text("secret\n")
    tree(workspace, secret="x", other="x", sub__a="x", sub__b="x")
    (workspace / "sub" / ".gitignore").write_text("b\n")
    (workspace / name).symlink_to("../outside" if name == ".gitignore" else ".env")
    (workspace / ".env").write_text("secret\n")
    assert files() == ["other", "secret", "sub/a"]


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore"])
def test_an_ignore_file_that_is_a_fifo_is_not_waited_for(files, workspace: Path, name: str) -> None:
    tree(workspace, a="x")
    os.mkfifo(workspace / name)
    assert files() == ["a"]


@pytest.mark.parametrize("kind", ["link", "file", "inner link", "inmost link"])
def test_a_repository_elsewhere_is_not_asked_what_it_excludes(
    files, workspace: Path, tmp_path: Path, kind: str
) -> None:
    tree(tmp_path, repository__info__exclude="secret\n", repository__commondir=".\n")
    tree(workspace, secret="x", passed_over="x")
    (workspace / ".gitignore").write_text("passed_over\n")
    repository = tmp_path / "repository"
    if kind == "link":
        (workspace / ".git").symlink_to(repository)
    elif kind == "file":
        (workspace / ".git").write_text(f"gitdir: {repository}\n")
    elif kind == "inner link":
        (workspace / ".git").mkdir()
        (workspace / ".git" / "info").symlink_to(repository / "info")
    else:
        (workspace / ".git" / "info").mkdir(parents=True)
        (workspace / ".git" / "info" / "exclude").symlink_to(repository / "info" / "exclude")
    assert [name for name in files() if name != ".git"] == ["secret"]


def test_a_folder_that_is_called_like_the_wanted_files_stays_ignored(rail: Rail, workspace: Path) -> None:
    for path in ("a.py", "data.py/b.py", "data.py/sub/c.py", "sub/kept.py/d.py", "sub/e.py"):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).touch()
    (workspace / ".gitignore").write_text("data.py/\n")
    (workspace / "sub" / ".ignore").write_text("e.py\n")
    assert rail().find("*.py").data.files == ("a.py", "sub/kept.py/d.py")


@pytest.mark.parametrize("name", [".gitignore", "sub/.gitignore"])
def test_more_rules_than_are_read_are_left_to_ripgrep(rail: Rail, workspace: Path, name: str) -> None:
    tree(workspace, a_py="x", b_py="x", sub__a_py="x", sub__b_py="x")
    rules = "".join(f"/{'long' * 250}/{number}\n" for number in range(1_100))
    (workspace / name).write_text(f"{rules}a_py\n")
    one = rail()
    hidden = {"sub/a_py"} if "/" in name else {"a_py", "sub/a_py"}
    assert set(one.find("*_py").data.files) == {"a_py", "b_py", "sub/a_py", "sub/b_py"} - hidden
    assert [one.find("a_py").meta.total, one.find("b_py").meta.total] == [2 - len(hidden), 2]
