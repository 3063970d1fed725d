"""Blobs: stored once, packed where that pays, given back as they were or not at all."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import postgres
from handrail.protocol.errors import StoreError
from handrail.store.blobs import Blobs
from handrail.store.shared_store import SharedStore

TEXT = b"the same line again\n" * 1_000

Open = Callable[[Path], Blobs]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens a folder of blobs, which PostgreSQL has too in one of the two cases."""
    if request.param == "sqlite":
        yield lambda folder: Blobs(str(folder))
        return
    with closing(SharedStore(postgres.make_scope())) as store:
        yield lambda folder: store.open_blobs(str(folder))


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_equal_contents_are_stored_once_packed(tmp_path: Path, opened: Open) -> None:
    blobs, text = opened(tmp_path), TEXT * 100
    assert blobs.put(text, pack=True) == blobs.put(text, pack=True) == blobs.put(text)
    blobs.pack()
    [file] = files(tmp_path)
    assert file.stat().st_size < len(text) / 10
    assert file.stat().st_mode & 0o077 == 0


def test_large_contents_are_packed_when_there_is_time(tmp_path: Path, opened: Open) -> None:
    blobs, data = opened(tmp_path), TEXT * 100
    digest = blobs.put(data, pack=True)
    [file] = files(tmp_path)
    assert file.stat().st_size == len(data)
    blobs.pack()
    [file] = files(tmp_path)
    assert file.stat().st_size < len(data) / 10
    assert b"".join(blobs.chunks(digest)) == data
    descriptor = blobs.open(digest)
    assert os.pread(descriptor, 20, 20) == TEXT[:20]
    os.close(descriptor)


@given(data=st.binary(max_size=200) | st.integers(0, 3_000_000).map(bytes), pack=st.booleans(), later=st.booleans())
def test_whatever_is_stored_comes_back(
    tmp_path_factory: pytest.TempPathFactory, opened: Open, data: bytes, pack: bool, later: bool
) -> None:
    blobs = opened(tmp_path_factory.mktemp("blobs"))
    digest = blobs.put(data, pack=pack)
    if later:
        blobs.pack()
    assert b"".join(blobs.chunks(digest)) == data


def test_a_file_is_stored_piece_by_piece_and_only_as_what_it_is(tmp_path: Path, opened: Open) -> None:
    (tmp_path / "source").write_bytes(TEXT)
    blobs = opened(tmp_path / "blobs")
    descriptor = os.open(tmp_path / "source", os.O_RDONLY)
    with pytest.raises(StoreError, match="was changed in the store"):
        blobs.keep_file("0" * 64, descriptor)
    assert files(tmp_path / "blobs") == []
    os.lseek(descriptor, 0, os.SEEK_SET)
    digest = hashlib.sha256(TEXT).hexdigest()
    blobs.keep_file(digest, descriptor)
    os.close(descriptor)
    assert b"".join(blobs.chunks(digest)) == TEXT


@pytest.mark.parametrize("pack", [True, False])
def test_what_was_damaged_is_noticed(tmp_path: Path, opened: Open, pack: bool) -> None:
    blobs = opened(tmp_path)
    text = TEXT * 10
    digest = blobs.put(text, pack=pack)
    blobs.pack()
    [file] = files(tmp_path)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(StoreError):
        list(blobs.chunks(digest))


def test_a_blob_that_is_gone_is_not_found(tmp_path: Path, opened: Open) -> None:
    blobs = opened(tmp_path)
    assert not blobs.has("0" * 64)
    with pytest.raises(FileNotFoundError):
        blobs.open("0" * 64)


def test_a_blob_is_stored_once_and_found_by_its_hash(tmp_path: Path, opened: Open) -> None:
    blobs = opened(tmp_path / "blobs")
    digest = blobs.put(b"text" * 100_000)
    assert blobs.put(b"text" * 100_000) == digest
    [path] = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert path.name == digest
    assert path.stat().st_mode & 0o777 == 0o600
    descriptor = blobs.open(digest)
    assert os.read(descriptor, 8) == b"texttext"
    os.close(descriptor)
    with pytest.raises(FileNotFoundError):
        blobs.open("0" * 64)
