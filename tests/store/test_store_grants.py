"""Grants on disk: whole or not at all, for the owner only, and gone for good once revoked."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from handrail.protocol.errors import StoreError
from handrail.protocol.permissions import StandingGrant
from handrail.store.grants import GrantFiles

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def granted(name: str, command: str = "mkdir", minutes: int = 0) -> StandingGrant:
    time = NOON + timedelta(minutes=minutes)
    return StandingGrant(id=name, command=command, scope="session", session_id="s", time=time)


@pytest.fixture
def files(tmp_path: Path) -> GrantFiles:
    return GrantFiles(str(tmp_path / "granted"))


def test_nothing_is_made_before_the_first(files: GrantFiles, tmp_path: Path) -> None:
    assert (files.names(), files.listed()) == (frozenset(), [])
    assert not (tmp_path / "granted").exists()


def test_they_come_back_as_they_were_the_oldest_first(files: GrantFiles, tmp_path: Path) -> None:
    later, first = granted("g-a", "git commit", 5), granted("g-b", "a 'b' *", 1)
    files.add(later)
    files.add(first)
    assert GrantFiles(str(tmp_path / "granted")).listed() == [first, later]
    assert files.names() == {"g-a", "g-b"}
    assert os.stat(tmp_path / "granted").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "granted" / "g-a").st_mode & 0o777 == 0o600


def test_the_same_again_changes_nothing(files: GrantFiles) -> None:
    files.add(granted("g-a"))
    files.add(granted("g-a", minutes=9))
    assert files.listed() == [granted("g-a")]


def test_a_revoked_one_stays_revoked_whoever_writes_it_again(files: GrantFiles, tmp_path: Path) -> None:
    files.add(granted("g-a"))
    files.revoke("g-a")
    files.add(granted("g-a"))
    assert files.names() == frozenset()
    # As if it were written at the very moment in which it is revoked.
    GrantFiles(str(tmp_path / "elsewhere")).add(granted("g-a"))
    os.rename(tmp_path / "elsewhere" / "g-a", tmp_path / "granted" / "g-a")
    assert (files.names(), files.listed()) == (frozenset(), [])
    files.revoke("g-a")
    files.revoke("g-a")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"id": "g-b"}', b"\xff"])
def test_one_that_cannot_be_read_or_has_another_name_is_none(files: GrantFiles, tmp_path: Path, data: bytes) -> None:
    files.add(granted("g-a"))
    (tmp_path / "granted" / "g-b").write_bytes(data)
    (tmp_path / "granted" / "g-c").write_bytes((tmp_path / "granted" / "g-a").read_bytes())
    (tmp_path / "granted" / "g-d.1234.new").write_bytes(b"half")
    assert [one.id for one in files.listed()] == ["g-a"]


def test_a_folder_that_is_none_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "granted").write_text("a file")
    files = GrantFiles(str(tmp_path / "granted"))
    with pytest.raises(StoreError, match="granted"):
        files.names()
    with pytest.raises(StoreError, match="granted"):
        files.add(granted("g-a"))
