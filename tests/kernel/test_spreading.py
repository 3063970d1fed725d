"""A folder that is told to spread what is in it stays a folder like any other."""

import fcntl
import os
from pathlib import Path

import pytest

from handrail.kernel.spreading import spread

_GET_FLAGS, _TOP = 0x80086601, 0x00020000


def flags(folder: Path) -> int | None:
    """What the file system was told about a folder; None where it can be told nothing."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))[:4], "little")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def told_to_spread(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        spread(descriptor)
    finally:
        os.close(descriptor)


def test_only_that_it_spreads_is_added_to_what_is_known_of_a_folder(tmp_path: Path) -> None:
    before = flags(tmp_path)
    if before is None:
        pytest.skip("this file system is told nothing about folders")
    told_to_spread(tmp_path)
    told_to_spread(tmp_path)
    assert flags(tmp_path) in {before, before | _TOP}
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_text("x")
    (tmp_path / "inner" / "file").rename(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x"


def test_where_it_cannot_be_told_nothing_happens() -> None:
    told_to_spread(Path("/proc/self"))
