"""Several roots: the innermost one counts, read-only ones stay as they are, and a root keeps its place when renamed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.errors import ToolError, UsageError
from handrail.settings import Settings
from handrail.settings.model import Paths
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

House = Callable[..., Workspace]
Rail = Callable[..., Handrail]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "book.txt").write_text("from the library")
    return folder


@pytest.fixture
def vendor(workspace: Path) -> Path:
    folder = workspace / "vendor"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "code.txt").write_text("theirs")
    return folder


def roots(*, read_only: tuple[Path, ...] = (), writable: tuple[Path, ...] = ()) -> Settings:
    return Settings(paths=Paths(read_only=tuple(map(str, read_only)), writable=tuple(map(str, writable))))


def test_an_extra_root_is_read_by_its_absolute_path_and_named_by_it(rail: Rail, library: Path, resolver: str) -> None:
    result = rail(settings=roots(read_only=(library,)), resolver=resolver).read(f"{library}/book.txt")
    assert result.ok
    assert result.content == "from the library"
    assert result.data.path == f"{library}/book.txt"


@pytest.mark.parametrize("name", ["book.txt", "new.txt", "new/new.txt"])
def test_nothing_in_a_read_only_root_is_written(rail: Rail, library: Path, resolver: str, name: str) -> None:
    result = rail(settings=roots(read_only=(library,)), resolver=resolver).write(f"{library}/{name}", "mine")
    assert result.error.code == "POLICY_DENIED"
    assert result.error.details["rule"] == "fs.read-only"
    assert {path.name for path in library.iterdir()} == {"book.txt"}
    assert (library / "book.txt").read_text() == "from the library"


def test_a_missing_file_of_a_read_only_root_is_missing_not_forbidden(rail: Rail, library: Path, resolver: str) -> None:
    result = rail(settings=roots(read_only=(library,)), resolver=resolver).read(f"{library}/bok.txt")
    assert result.error.code == "NOT_FOUND"
    assert result.error.details["near"] == [f"{library}/book.txt"]


def test_a_writable_extra_root_is_written(rail: Rail, library: Path, resolver: str) -> None:
    result = rail(settings=roots(writable=(library,)), resolver=resolver).write(f"{library}/new/page.txt", "more")
    assert result.ok
    assert result.data.path == f"{library}/new/page.txt"
    assert (library / "new" / "page.txt").read_text() == "more"


@pytest.mark.parametrize("path", ["vendor/package/code.txt", "vendor/package/new.txt", "vendor/./package/../new.txt"])
def test_a_relative_path_into_a_nested_read_only_root_is_not_writable(
    rail: Rail, workspace: Path, vendor: Path, resolver: str, path: str
) -> None:
    one = rail(settings=roots(read_only=(vendor,)), resolver=resolver)
    for spelled in (path, f"{workspace}/{path}"):
        result = one.write(spelled, "mine")
        assert result.error.code == "POLICY_DENIED"
        assert result.error.details["rule"] == "fs.read-only"
    assert [str(found.relative_to(vendor)) for found in vendor.rglob("*")] == ["package", "package/code.txt"]
    assert (vendor / "package" / "code.txt").read_text() == "theirs"


def test_a_link_into_a_nested_read_only_root_is_not_writable(
    rail: Rail, workspace: Path, vendor: Path, resolver: str
) -> None:
    (workspace / "link").symlink_to("vendor/package/code.txt")
    (workspace / "folder").symlink_to(vendor)
    one = rail(settings=roots(read_only=(vendor,)), resolver=resolver)
    for path in ("link", "folder/package/code.txt", "folder/new.txt"):
        assert one.write(path, "mine").error.code == "POLICY_DENIED"
    assert (vendor / "package" / "code.txt").read_text() == "theirs"


def test_the_innermost_of_nested_roots_counts(rail: Rail, workspace: Path, vendor: Path, resolver: str) -> None:
    settings = roots(read_only=(vendor,), writable=(vendor / "package",))
    one = rail(settings=settings, resolver=resolver)
    assert one.write("vendor/package/code.txt", "ours").ok
    assert one.write("vendor/x.txt", "ours").error.code == "POLICY_DENIED"


@pytest.mark.parametrize("spelled", ["vendor/package/code.txt", "{workspace}/vendor/package/code.txt", "link"])
def test_a_file_has_one_name_whatever_the_spelling_so_that_staleness_is_found(
    rail: Rail, workspace: Path, vendor: Path, resolver: str, spelled: str
) -> None:
    (workspace / "link").symlink_to("vendor/package/code.txt")
    one = rail(settings=roots(writable=(vendor,)), resolver=resolver)
    read = one.read(spelled.format(workspace=workspace))
    assert read.data.path == f"{vendor}/package/code.txt"
    (vendor / "package" / "code.txt").write_text("changed by somebody")
    assert one.write("vendor/package/code.txt", "mine").error.code == "STALE_FILE"


def test_a_link_may_lead_from_one_root_into_another(rail: Rail, workspace: Path, library: Path, resolver: str) -> None:
    (workspace / "books").symlink_to(library)
    one = rail(settings=roots(read_only=(library,)), resolver=resolver)
    assert one.read("books/book.txt").data.path == f"{library}/book.txt"
    assert one.write("books/book.txt", "mine").error.code == "POLICY_DENIED"


def test_two_roots_whose_names_begin_alike_are_two_roots(rail: Rail, tmp_path: Path, resolver: str) -> None:
    one, other = tmp_path / "data", tmp_path / "data-more"
    for folder in (one, other):
        folder.mkdir()
        (folder / "x.txt").write_text(folder.name)
    opened = rail(settings=roots(read_only=(one,)), resolver=resolver)
    assert opened.read(f"{one}/x.txt").content == "data"
    assert opened.read(f"{other}/x.txt").error.code == "OUTSIDE_WORKSPACE"


def test_the_folder_of_another_session_is_outside(rail: Rail, tmp_path: Path, resolver: str) -> None:
    first, second = rail(session="first", resolver=resolver), rail(session="second", resolver=resolver)
    own = {one.session_id: next((tmp_path / "state").rglob(f"{one.session_id}/files")) for one in (first, second)}
    (own["first"] / "note.txt").write_text("of the first")
    assert first.read(f"{own['first']}/note.txt").content == "of the first"
    for result in (
        second.read(f"{own['first']}/note.txt"),
        second.ls(f"{own['first']}"),
        second.write(f"{own['first']}/note.txt", "x"),
        first.read(f"{own['first']}/../journal.db"),
        first.ls(str(tmp_path / "state")),
    ):
        assert result.error.code == "OUTSIDE_WORKSPACE"


def test_a_root_that_is_renamed_stays_the_root(house: House, workspace: Path) -> None:
    (workspace / "a.txt").write_text("here")
    (workspace / "link").symlink_to("a.txt")
    one = house()
    moved = workspace.with_name("moved")
    workspace.rename(moved)
    workspace.mkdir()
    (workspace / "a.txt").write_text("an impostor")
    for path in ("a.txt", "link", f"{workspace}/a.txt"):
        with one.open_file(path) as opened:
            assert os.read(opened.descriptor, 100) == b"here"
            assert opened.real == "a.txt"
    landing, real = one.resolve_for_write("new.txt")
    with landing:
        assert real == "new.txt"
        assert os.stat(".", dir_fd=landing.folder).st_ino == moved.stat().st_ino


def test_a_workspace_reached_through_a_link_is_known_by_both_names(
    rail: Rail, tmp_path: Path, workspace: Path, resolver: str
) -> None:
    (workspace / "a.txt").write_text("here")
    (tmp_path / "shortcut").symlink_to(workspace)
    one = rail(workspace=tmp_path / "shortcut", resolver=resolver)
    for path in ("a.txt", f"{workspace}/a.txt", f"{tmp_path}/shortcut/a.txt"):
        assert one.read(path).data.path == "a.txt"


def test_names_above_a_root_protect_nothing_below_it(rail: Rail, tmp_path: Path, resolver: str) -> None:
    """A workspace may lie in `~/.claude/worktrees` or in `~/.docker`: that says nothing about its files."""
    inner = tmp_path / ".docker" / ".claude" / "project"
    inner.mkdir(parents=True)
    one = rail(workspace=inner, resolver=resolver)
    for path in ("a.txt", f"{inner}/b.txt"):
        assert one.write(path, "x").ok
        assert one.read(path).ok


@pytest.mark.parametrize("which", ["read_only", "writable"])
@pytest.mark.parametrize("path", [".", "state", "state/workspaces"])
def test_no_root_may_hold_the_state_or_lie_in_it(rail: Rail, tmp_path: Path, which: str, path: str) -> None:
    """The agent must not reach its own journal, audit or approvals, whatever else it may."""
    (tmp_path / "state" / "workspaces").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"must not contain each other. Set HANDRAIL_STATE_DIR."):
        rail(settings=roots(**{which: (tmp_path / path,)}))


def test_a_root_that_is_no_folder_is_refused_at_the_start(house: House, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(UsageError, match="cannot be opened"):
            Root(str(path))


def test_a_deleted_file_keeps_its_name_while_it_is_open(house: House, workspace: Path) -> None:
    """The kernel says `.env (deleted)` of a file that was just removed: the mark must not hide the name."""
    (workspace / "folder").mkdir()
    (workspace / "link").symlink_to("folder")
    one = house()
    landing, _ = one.resolve_for_write("link/x")
    with landing:
        (workspace / "folder").rmdir()
        assert one._find_root_of(landing.folder, "link")[1] == "folder"


def test_closing_twice_is_harmless(workspace: Path) -> None:
    one = Workspace(str(workspace))
    one.close()
    one.close()
    with pytest.raises(ToolError):
        one.open_file("x")
