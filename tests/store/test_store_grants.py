"""Grants and opened folders on disk: atomic, for the owner only, and gone for good once revoked."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

from handrail.protocol.errors import StoreError
from handrail.protocol.permissions import OpenedFolder, StandingGrant
from handrail.store.grants import GrantedFolders, GrantFiles

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def granted(name: str, command: str = "mkdir", minutes: int = 0) -> StandingGrant:
    time = NOON + timedelta(minutes=minutes)
    return StandingGrant(id=name, command=command, scope="session", session_id="s", time=time)


@pytest.fixture
def files(tmp_path: Path) -> GrantFiles:
    return GrantFiles(str(tmp_path / "granted"))


def test_nothing_is_made_before_the_first(files: GrantFiles, tmp_path: Path) -> None:
    assert (files.names(), files.list_grants()) == (frozenset(), [])
    assert not (tmp_path / "granted").exists()


def test_they_come_back_as_they_were_the_oldest_first(files: GrantFiles, tmp_path: Path) -> None:
    later, first = granted("g-a", "git commit", 5), granted("g-b", "a 'b' *", 1)
    files.add(later)
    files.add(first)
    assert GrantFiles(str(tmp_path / "granted")).list_grants() == [first, later]
    assert files.names() == {"g-a", "g-b"}
    assert os.stat(tmp_path / "granted").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "granted" / "g-a").st_mode & 0o777 == 0o600


def test_the_same_again_changes_nothing(files: GrantFiles) -> None:
    files.add(granted("g-a"))
    files.add(granted("g-a", minutes=9))
    assert files.list_grants() == [granted("g-a")]


def test_a_revoked_one_stays_revoked_whoever_writes_it_again(files: GrantFiles, tmp_path: Path) -> None:
    files.add(granted("g-a"))
    files.revoke("g-a")
    files.add(granted("g-a"))
    assert files.names() == frozenset()
    # As if it were written at the very moment in which it is revoked.
    GrantFiles(str(tmp_path / "elsewhere")).add(granted("g-a"))
    os.rename(tmp_path / "elsewhere" / "g-a", tmp_path / "granted" / "g-a")
    assert (files.names(), files.list_grants()) == (frozenset(), [])
    files.revoke("g-a")
    files.revoke("g-a")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"id": "g-b"}', b"\xff"])
def test_one_that_cannot_be_read_or_has_another_name_is_none(files: GrantFiles, tmp_path: Path, data: bytes) -> None:
    files.add(granted("g-a"))
    (tmp_path / "granted" / "g-b").write_bytes(data)
    (tmp_path / "granted" / "g-c").write_bytes((tmp_path / "granted" / "g-a").read_bytes())
    (tmp_path / "granted" / "g-d.1234.new").write_bytes(b"half")
    assert [one.id for one in files.list_grants()] == ["g-a"]


def test_a_folder_that_is_none_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "granted").write_text("a file")
    files = GrantFiles(str(tmp_path / "granted"))
    with pytest.raises(StoreError, match="granted"):
        files.names()
    with pytest.raises(StoreError, match="granted"):
        files.add(granted("g-a"))


# Opened folders


def folder(path: str, access: Literal["read", "write"] = "read") -> OpenedFolder:
    return OpenedFolder(path=path, access=access, scope="workspace", session_id="s", time=datetime.now(UTC))


def test_they_are_listed_by_path_and_forgotten_one_by_one(tmp_path: Path) -> None:
    store = GrantedFolders(str(tmp_path / "opened"))
    assert (store.names(), store.list_folders()) == ((), ())
    second, first = folder("/b"), folder("/a")
    store.add(second)
    store.add(first)
    assert store.list_folders() == (first, second)
    assert store.remove("/a")
    assert not store.remove("/a")
    assert store.list_folders() == (second,)


def test_opened_for_writing_it_is_no_longer_only_for_reading(tmp_path: Path) -> None:
    store = GrantedFolders(str(tmp_path / "opened"))
    store.add(folder("/a"))
    before = store.names()
    store.add(folder("/a", "write"))
    assert [found.access for found in store.list_folders()] == ["write"]
    assert store.names() != before


def test_what_a_killed_process_left_unfinished_counts_for_nothing(tmp_path: Path) -> None:
    store = GrantedFolders(str(tmp_path))
    (tmp_path / "0123-read.abc.new").write_text("{")
    assert (store.names(), store.list_folders()) == ((), ())


def test_a_place_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = GrantedFolders(str(tmp_path / "file"))
    for attempt in (store.names, store.list_folders, lambda: store.add(folder("/a")), lambda: store.remove("/a")):
        with pytest.raises(StoreError):
            attempt()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = GrantedFolders(str(tmp_path))
    store.add(folder("/a"))
    (name,) = store.names()
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(StoreError, match="cannot be stored"):
        store.add(folder("/a"))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert store.list_folders() == ()
