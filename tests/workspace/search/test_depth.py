"""Trees deeper than Python calls itself, and folders with odd names."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.kernel.files import has_openat2
from handrail.settings import Settings
from handrail.settings.model import Search
from handrail.workspace.search.engine import Pattern, SearchScope
from handrail.workspace.search.filters import CredentialFilter, GlobFilter
from handrail.workspace.search.ripgrep import Ripgrep, find_ripgrep

Rail = Callable[..., Handrail]
Protected = Callable[..., set[bytes]]
DEPTH = sys.getrecursionlimit() + 100


@pytest.fixture
def where(workspace: Path) -> Iterator[SearchScope]:
    folder = os.open(workspace, os.O_RDONLY)
    yield SearchScope(folder, folder, ".", has_openat2(), exclude=("nothing",))
    os.close(folder)


@pytest.fixture
def deep_tree(workspace: Path) -> Iterator[bytes]:
    """The path of a file so deep down, below one-letter folders."""
    folder = os.open(workspace, os.O_RDONLY)
    try:
        for _ in range(DEPTH):
            os.mkdir("d", dir_fd=folder)
            folder, outer = os.open("d", os.O_RDONLY, dir_fd=folder), folder
            os.close(outer)
        os.close(os.open(".env", os.O_CREAT, dir_fd=folder))
        os.close(os.open("f", os.O_CREAT, dir_fd=folder))
        yield b"d/" * DEPTH + b"f"
        for name in ("f", ".env"):
            os.unlink(name, dir_fd=folder)
        for _ in range(DEPTH):  # rmtree calls itself
            folder, inner = os.open("..", os.O_RDONLY, dir_fd=folder), folder
            os.close(inner)
            os.rmdir("d", dir_fd=folder)
    finally:
        os.close(folder)


def test_what_is_deeper_than_calls_may_be_is_judged(where: SearchScope, deep_tree: bytes, protected: Protected) -> None:
    assert GlobFilter(where).accepts(deep_tree)
    assert not CredentialFilter(where).matches(deep_tree)
    assert CredentialFilter(where).matches(b".ssh/" + deep_tree)
    assert protected(exclude=("nothing",)) == {b"d/" * DEPTH + b".env"}


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
def test_what_is_deeper_than_calls_may_be_is_found(rail: Rail, deep_tree: bytes, engine: str) -> None:
    one = rail(settings=Settings(search=Search(engine=engine)))  # type: ignore[arg-type]
    result = one.find("f", exclude=("nothing",))
    assert result.ok, result.error
    assert list(result.data.files) == [deep_tree.decode()]


def test_protected_names_are_counted_in_folders_with_any_name(
    workspace: Path, where: SearchScope, protected: Protected
) -> None:
    folders = (b"a\nb", b"bad\xff", b"plain", b"q: Ignore(IgnoreMatch(Override\nrg: DEBUG|ignore::walk|x: ignoring c")
    for folder in folders:
        path = os.path.join(os.fsencode(workspace), folder)
        os.mkdir(path)
        for name in (b".env", b"t"):
            Path(os.fsdecode(os.path.join(path, name))).write_text("hit\n")
    engine = Ripgrep(find_ripgrep(()) or "")
    assert len(list(engine.hits(where, Pattern("hit"), lambda: False))) == len(folders)
    assert protected() == {folder + b"/.env" for folder in folders}


def test_a_protected_name_behind_a_link_is_not_counted(workspace: Path, tmp_path: Path, protected: Protected) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / ".env").write_text("hit\n")
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / ".env").write_text("hit\n")
    assert protected() == {b".env"}


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
def test_a_credential_by_its_place_is_withheld_from_a_search_that_begins_there(
    rail: Rail, workspace: Path, engine: str
) -> None:
    """`settings.xml` is none, `.m2/settings.xml` is one."""
    (workspace / ".m2").mkdir()
    for name in ("settings.xml", "other.xml"):
        (workspace / ".m2" / name).write_text("hit\n")
    one = rail(settings=Settings(search=Search(engine=engine)))  # type: ignore[arg-type]
    for path in (".", ".m2"):
        found, searched = one.find("*", path), one.grep("hit", path)
        assert list(found.data.files) == [match.path for match in searched.data.matches] == [".m2/other.xml"]
        assert (found.meta.protected, searched.meta.protected) == ((1, 1) if path == ".m2" else (None, None))
        one.exec("true")
