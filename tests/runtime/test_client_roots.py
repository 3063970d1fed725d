"""Folders that a client says it works on are roots only as far as the user's settings say so."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Paths

Make = Callable[..., Handrail]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "a.txt").write_text("of another folder\n")
    return folder


def with_roots(rail: Make, setting: str, **more: Any) -> Handrail:
    return rail(mode="full", settings=Settings(paths=Paths(client_roots=setting)), **more)  # type: ignore[arg-type]


def code(result: Any) -> str | None:
    return result.error.code if result.error else None


def test_without_a_setting_a_root_outside_is_not_used_and_the_setting_is_named(rail: Make, other: Path) -> None:
    one = rail(mode="full")
    (told,) = one.set_client_roots([str(other)])
    assert str(other) in told
    assert 'paths.client_roots = "read-only"' in told
    assert code(one.read(str(other / "a.txt"))) == "OUTSIDE_WORKSPACE"


def test_roots_inside_the_workspace_change_nothing(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    (workspace / "src").mkdir()
    assert one.set_client_roots([str(workspace), str(workspace / "src")]) == ()
    assert one.write("src/a.txt", "x").ok


def test_a_root_for_reading_is_read_and_not_written(rail: Make, other: Path) -> None:
    one = with_roots(rail, "read-only")
    assert one.set_client_roots([str(other)]) == ()
    assert "of another folder" in one.read(str(other / "a.txt")).content
    assert not one.write(str(other / "b.txt"), "x").ok
    assert not (other / "b.txt").exists()


def test_a_root_for_writing_is_written_and_can_be_undone(rail: Make, other: Path) -> None:
    one = with_roots(rail, "writable")
    assert one.set_client_roots([str(other)]) == ()
    assert one.write(str(other / "b.txt"), "x").ok
    assert (other / "b.txt").read_text() == "x"
    assert one.undo().ok
    assert not (other / "b.txt").exists()


def test_the_last_list_counts(rail: Make, other: Path, tmp_path: Path) -> None:
    one = with_roots(rail, "read-only")
    another = tmp_path / "another"
    another.mkdir()
    one.set_client_roots([str(other)])
    one.set_client_roots([str(another)])
    assert code(one.read(str(other / "a.txt"))) == "OUTSIDE_WORKSPACE"
    assert one.ls(str(another)).ok
    one.set_client_roots([])
    assert code(one.ls(str(another))) == "OUTSIDE_WORKSPACE"


def test_what_nothing_opens_is_not_opened_by_a_client(
    rail: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    one = with_roots(rail, "writable")
    shut = [str(home), "/", "/proc/self", "/etc", str(home / ".ssh"), str(tmp_path / "state"), str(tmp_path)]
    told = one.set_client_roots(shut)
    assert len(told) == len(shut), told
    assert code(one.ls(str(home))) == "OUTSIDE_WORKSPACE"


def test_a_root_that_is_no_folder_is_told(rail: Make, other: Path) -> None:
    one = with_roots(rail, "read-only")
    told = one.set_client_roots([str(other / "a.txt"), str(other / "missing")])
    assert all("cannot be opened as a folder" in text for text in told)
    assert len(told) == 2


def test_a_link_to_a_folder_is_judged_by_where_it_leads(rail: Make, tmp_path: Path, workspace: Path) -> None:
    os.symlink("/etc", workspace / "link")
    one = with_roots(rail, "writable")
    (told,) = one.set_client_roots([str(workspace / "link")])
    assert "/etc" in told


def test_the_restricted_profile_has_no_roots_of_a_client(rail: Make, other: Path) -> None:
    settings = Settings(profile="restricted", paths=Paths(client_roots="writable"))
    one = rail(settings=settings)
    (told,) = one.set_client_roots([str(other)])
    assert "restricted" in told


def test_many_roots_leave_no_descriptor_behind(rail: Make, tmp_path: Path) -> None:
    folders = [tmp_path / f"root-{number}" for number in range(40)]
    for folder in folders:
        folder.mkdir()
    one = with_roots(rail, "read-only")
    before = len(os.listdir("/proc/self/fd"))
    told = one.set_client_roots([str(folder) for folder in folders])
    assert told == ("8 more roots of the client are not used: there may be 32.",)
    assert len(os.listdir("/proc/self/fd")) == before + 32
    one.close()
    assert len(os.listdir("/proc/self/fd")) < before
