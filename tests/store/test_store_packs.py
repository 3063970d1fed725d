"""Many small contents are kept as one file, and found, mended and swept like any other."""

import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.protocol.errors import StoreError
from handrail.store.blobs import Blobs


def hashed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def contents(number: int) -> Iterator[tuple[str, bytes]]:
    for each in range(number):
        data = f"line {each} of many that look alike\n".encode() * (each % 50)
        yield hashed(data), data


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_many_contents_become_one_file_and_every_one_is_found_again(tmp_path: Path) -> None:
    Blobs(str(tmp_path / "blobs")).keep_all(contents(1_000))
    assert len(files(tmp_path)) == 1
    again = Blobs(str(tmp_path / "blobs"))
    for digest, data in contents(1_000):
        assert again.has(digest)
        assert b"".join(again.chunks(digest)) == data
        with open(again.open(digest), "rb") as file:
            assert file.read() == data


def test_a_pack_is_smaller_than_every_content_packed_by_itself(tmp_path: Path) -> None:
    kept = list(contents(1_000))
    Blobs(str(tmp_path / "blobs")).keep_all(kept)
    alone = sum(len(zlib.compress(data)) for data in dict(kept).values())
    assert sum(path.stat().st_size for path in files(tmp_path)) <= alone * 1.1


def test_few_contents_get_a_file_each(tmp_path: Path) -> None:
    Blobs(str(tmp_path / "blobs")).keep_all(contents(3))
    assert len(files(tmp_path)) == 3


def test_who_asks_about_many_is_told_which_are_missing(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    blobs.keep_all(contents(100))
    alone, never = hashed(b"alone"), hashed(b"never kept")
    blobs.keep(alone, b"alone", pack=True)
    packed = [digest for digest, _ in contents(100)]
    assert list(blobs.missing([*packed, never, alone])) == [never]
    for path in files(tmp_path):
        if path.parent.name != "blobs":
            path.unlink()
    assert set(blobs.missing([*packed, alone])) == set(packed)


def test_what_is_kept_already_is_not_kept_again(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    blobs.keep_all(contents(100))
    Blobs(str(tmp_path / "blobs")).keep_all(contents(100))
    digest, data = list(contents(100))[50]
    blobs.keep(digest, data, pack=True)
    assert len(files(tmp_path)) == 1


def test_a_pack_that_another_process_wrote_is_found_without_opening_anew(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    digest, data = list(contents(100))[-1]
    assert not blobs.has(digest)
    Blobs(str(tmp_path / "blobs")).keep_all(contents(100))
    assert b"".join(blobs.chunks(digest)) == data


def test_a_pack_stays_while_anything_of_it_is_used(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    blobs.keep_all(contents(100))
    digests = [digest for digest, _ in contents(100)]
    blobs.sweep({digests[7]}, seconds=-1)
    assert blobs.has(digests[8])
    blobs.sweep(set(), seconds=3_600)
    assert blobs.has(digests[8]), "young ones may yet get their change"
    blobs.sweep(set(), seconds=-1)
    assert not blobs.has(digests[8])
    assert files(tmp_path) == []


def test_a_content_of_a_pack_that_goes_is_not_there_any_more(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    blobs.keep_all(contents(100))
    [pack] = files(tmp_path)
    pack.unlink()
    digest, data = list(contents(100))[60]
    assert not blobs.has(digest)
    blobs.keep(digest, data)
    assert b"".join(blobs.chunks(digest)) == data


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_a_pack_that_was_damaged_is_never_taken_for_what_was_stored(tmp_path: Path, cut: int) -> None:
    Blobs(str(tmp_path / "blobs")).keep_all(contents(100))
    [pack] = files(tmp_path)
    os.truncate(pack, cut)
    blobs = Blobs(str(tmp_path / "blobs"))
    assert not any(blobs.has(digest) for digest, _ in contents(100))
    blobs.sweep(set(), seconds=-1)
    assert files(tmp_path) == []


def test_bytes_that_changed_in_a_pack_are_noticed(tmp_path: Path) -> None:
    Blobs(str(tmp_path / "blobs")).keep_all(contents(100))
    [pack] = files(tmp_path)
    data = bytearray(pack.read_bytes())
    data[100] ^= 255
    pack.write_bytes(data)
    with pytest.raises(StoreError):
        b"".join(Blobs(str(tmp_path / "blobs")).chunks(next(iter(dict(list(contents(100))[40:])))))
