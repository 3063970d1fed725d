"""A file's bytes are read and hashed as they are, whatever size its status said."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.workspace.file_state import hash_range, read_contents, read_file_snapshot, read_start
from handrail.workspace.text import SAMPLE_BYTES

DATA = os.urandom(SAMPLE_BYTES + 100)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "a").write_bytes(DATA)
    opened = os.open(tmp_path / "a", os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.mark.parametrize("expected", [len(DATA), 0, 10, len(DATA) + 10], ids=["right", "empty", "grown", "shrunk"])
@pytest.mark.parametrize("keep", [0, 100, len(DATA), 1 << 20])
def test_contents_are_those_of_the_file_whatever_size_was_expected(descriptor: int, expected: int, keep: int) -> None:
    contents = read_contents(descriptor, expected, keep)
    assert (contents.hash, contents.size) == (hashlib.sha256(DATA).hexdigest(), len(DATA))
    assert DATA.startswith(contents.start)
    assert contents.start
    assert contents.data == (DATA if keep >= len(DATA) else None)


def test_a_check_can_end_the_reading(descriptor: int) -> None:
    def give_up() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        read_contents(descriptor, len(DATA), check=give_up)


def test_a_part_is_hashed_and_a_start_is_read_wherever_the_descriptor_stands(descriptor: int) -> None:
    os.lseek(descriptor, 50, os.SEEK_SET)
    assert hash_range(descriptor, 10, 20) == hashlib.sha256(DATA[10:30]).hexdigest()
    assert hash_range(descriptor, len(DATA) - 5, 20) == hashlib.sha256(DATA[-5:]).hexdigest()
    assert read_start(descriptor, 7) == DATA[:7]
    assert read_start(descriptor, len(DATA) + 1) == DATA
    assert read_start(descriptor, 0) == b""


def test_a_snapshot_knows_its_own_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        for keep in (0, 100):
            (tmp_path / "a").write_bytes(b"one")
            snapshot = read_file_snapshot(folder, "a", keep)
            assert snapshot is not None
            with (tmp_path / "a").open("rb") as file:
                assert snapshot.has_same_bytes(file.fileno())
                for other in (b"two", b"on", b"ones"):
                    (tmp_path / "a").write_bytes(other)
                    assert not snapshot.has_same_bytes(file.fileno())
        assert read_file_snapshot(folder, "missing", 0) is None
    finally:
        os.close(folder)
