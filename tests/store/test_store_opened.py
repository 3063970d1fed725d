"""The folders that people opened, as they are kept."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from handrail.protocol.errors import StoreError
from handrail.protocol.permissions import OpenedFolder
from handrail.store.grants import GrantedFolders


def folder(path: str, access: Literal["read", "write"] = "read") -> OpenedFolder:
    return OpenedFolder(path=path, access=access, scope="workspace", session_id="s", time=datetime.now(UTC))


def test_they_are_listed_by_path_and_forgotten_one_by_one(tmp_path: Path) -> None:
    store = GrantedFolders(str(tmp_path / "opened"))
    assert (store.names(), store.listed()) == ((), ())
    second, first = folder("/b"), folder("/a")
    store.add(second)
    store.add(first)
    assert store.listed() == (first, second)
    assert store.remove("/a")
    assert not store.remove("/a")
    assert store.listed() == (second,)


def test_opened_for_writing_it_is_no_longer_only_for_reading(tmp_path: Path) -> None:
    store = GrantedFolders(str(tmp_path / "opened"))
    store.add(folder("/a"))
    before = store.names()
    store.add(folder("/a", "write"))
    assert [found.access for found in store.listed()] == ["write"]
    assert store.names() != before


def test_what_a_killed_process_left_unfinished_counts_for_nothing(tmp_path: Path) -> None:
    store = GrantedFolders(str(tmp_path))
    (tmp_path / "0123-read.abc.new").write_text("{")
    assert (store.names(), store.listed()) == ((), ())


def test_a_place_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = GrantedFolders(str(tmp_path / "file"))
    for attempt in (store.names, store.listed, lambda: store.add(folder("/a")), lambda: store.remove("/a")):
        with pytest.raises(StoreError):
            attempt()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = GrantedFolders(str(tmp_path))
    store.add(folder("/a"))
    (name,) = store.names()
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(StoreError, match="cannot be kept"):
        store.add(folder("/a"))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert store.listed() == ()
