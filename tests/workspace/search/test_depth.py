"""Trees deeper than Python calls itself, and names that a log cannot tell."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.kernel.openat2 import has_openat2
from handrail.settings import Settings
from handrail.settings.model import Search
from handrail.workspace.search.engine import Pattern, SearchScope
from handrail.workspace.search.filters import CredentialFilter, GlobFilter, collect_withheld_names, list_withheld_names
from handrail.workspace.search.ripgrep import Ripgrep, find_ripgrep
from handrail.workspace.search.ripgrep_output import RipgrepStderr

Rail = Callable[..., Handrail]
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


def test_what_is_deeper_than_calls_may_be_is_judged(where: SearchScope, deep_tree: bytes) -> None:
    assert GlobFilter(where)(deep_tree)
    assert CredentialFilter()(deep_tree) is None
    assert CredentialFilter()(b".ssh/" + deep_tree) == b".ssh"
    assert collect_withheld_names(where, None, lambda: False) == {b"d/" * DEPTH + b".env"}


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
def test_what_is_deeper_than_calls_may_be_is_found(rail: Rail, deep_tree: bytes, engine: str) -> None:
    one = rail(settings=Settings(search=Search(engine=engine)))  # type: ignore[arg-type]
    result = one.find("f", exclude=("nothing",))
    assert result.ok, result.error
    assert list(result.data.files) == [deep_tree.decode()]


def test_protected_names_are_counted_in_folders_with_any_name(workspace: Path, where: SearchScope) -> None:
    """ripgrep's log is in lines, and in UTF-8."""
    folders = (b"a\nb", b"bad\xff", b"plain", b"q: Ignore(IgnoreMatch(Override\nrg: DEBUG|ignore::walk|x: ignoring c")
    for folder in folders:
        path = os.path.join(os.fsencode(workspace), folder)
        os.mkdir(path)
        for name in (b".env", b"t"):
            Path(os.fsdecode(os.path.join(path, name))).write_text("hit\n")
    engine = Ripgrep(find_ripgrep(()) or "")
    assert len(list(engine.hits(where, Pattern("hit"), lambda: False))) == len(folders)
    assert engine.withheld(where, None, lambda: False) == {folder + b"/.env" for folder in folders}


@pytest.mark.parametrize("path", [b"/etc/.env", b"../.env", b"a/../../.env", b""])
def test_a_log_names_nothing_outside(path: bytes) -> None:
    complaints = RipgrepStderr()
    complaints.add(b"rg: DEBUG|ignore::walk|x.rs:1: ignoring %b: Ignore(IgnoreMatch(Override(Glob)))\n" % path)
    assert (complaints.passed_over, complaints.noise) == ([], 1)


def test_a_protected_name_behind_a_link_is_not_counted(workspace: Path, where: SearchScope, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / ".env").write_text("hit\n")
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / ".env").write_text("hit\n")
    assert list_withheld_names([b".env", b"link/.env"], where) == {b".env"}
