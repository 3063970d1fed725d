"""The log of a kept command: its beginning and its end, exact, whatever is dropped in between."""

import fcntl
import itertools
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.process.keeper.state import LogWriter
from handrail.process.sessions.sessions import ProcessSession
from handrail.process.sessions.store import ProcessLog

HEAD, KEPT, SEGMENT = 100, 400, 50
_folders = itertools.count()


def numbered(size: int, start: int = 0) -> bytes:
    """Bytes that tell where they are."""
    return bytes((position * 7 + position // 251) % 256 for position in range(start, start + size))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def writer(folder: int) -> LogWriter:
    return LogWriter(folder, head=HEAD, kept=KEPT, segment=SEGMENT)


@given(pieces=st.lists(st.integers(0, 300), max_size=30), cleared=st.integers(0, 40))
def test_both_ends_are_kept_and_the_rest_is_counted(tmp_path: Path, pieces: list[int], cleared: int) -> None:
    place = tmp_path / str(next(_folders))
    place.mkdir()
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # as a keeper does
    written, read = writer(folder), ProcessLog(str(place))
    gone = 0
    for number, size in enumerate(pieces):
        written.add(numbered(size, written.size))
        if number == cleared:
            read.clear()
            gone = written.size
    whole, kept = numbered(sum(pieces)), b"".join(read.kept())
    assert read.size == len(whole)
    assert read.dropped == len(whole) - len(kept)
    assert sum(path.stat().st_size for path in place.glob("log-*")) <= HEAD + KEPT + SEGMENT
    if not gone:
        assert kept[:HEAD] == whole[:HEAD]
    tail = min(KEPT, len(whole) - gone)
    assert kept.endswith(whole[len(whole) - tail :])
    assert len(kept) <= len(whole) - gone
    for position in range(0, len(whole) + 50, 37):
        found, data = read.read_from(position, 80)
        assert found >= position
        assert data == whole[found : found + len(data)]
        assert data or found >= len(whole)
    written.close()
    os.close(folder)


def test_a_log_that_nobody_wrote_is_empty(tmp_path: Path) -> None:
    log = ProcessLog(str(tmp_path))
    assert (log.size, log.dropped, list(log.kept()), log.read_from(5, 10)) == (0, 0, [], (5, b""))
    gone = ProcessLog(str(tmp_path / "removed"))
    assert (gone.size, gone.dropped, list(gone.kept())) == (0, 0, [])


def test_what_a_disk_has_no_room_for_is_dropped_and_counted(folder: int, tmp_path: Path) -> None:
    """The disk is full: no file may be longer than what is there, and then there may be no file at all."""
    written, read = writer(folder), ProcessLog(str(tmp_path))
    written.add(numbered(30))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        written.add(numbered(10, 30))
        written.add(numbered(300, 40))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert written.size == 340
    assert written.trouble is not None
    while not any(path.name != "log-" + "0" * 20 for path in tmp_path.glob("log-*")):
        written.add(numbered(1, written.size))
    whole = numbered(written.size)
    assert read.size == len(whole)
    assert b"".join(read.kept()) == whole[:30] + whole[-1:]
    assert read.dropped == len(whole) - 31
    assert read.read_from(35, 100) == (len(whole) - 1, whole[-1:])
    written.close()


def test_a_command_prints_more_than_is_kept(start_confined: Callable[..., ProcessSession]) -> None:
    one = start_confined("seq 1 1000000")
    assert one.wait(60.0)
    whole = "".join(f"{number}\n" for number in range(1, 1_000_001)).encode()
    kept = b"".join(one.log.kept())
    record = one.record()
    assert (record.size, record.dropped) == (len(whole), len(whole) - len(kept))
    assert kept[: 1 << 12] == whole[: 1 << 12]
    assert kept[1 << 12 :] == whole[-(len(kept) - (1 << 12)) :]
    assert 1 << 20 <= len(kept) - (1 << 12) <= (1 << 20) + (1 << 17)
    assert record.last_line == "1000000"


def test_clearing_drops_what_was_printed_so_far(start_confined: Callable[..., ProcessSession]) -> None:
    one = start_confined("echo before; read word; echo $word")
    while one.log.size < 7:
        assert not one.wait(0.02)
    one.log.clear()
    assert list(one.log.kept()) == []
    one.write(b"after\n", eof=False)
    assert one.wait(60.0)
    assert b"".join(one.log.kept()) == b"after\n"
    assert (one.record().size, one.record().dropped) == (13, 7)


def test_clearing_what_has_ended_leaves_nothing_on_disk(start_confined: Callable[..., ProcessSession]) -> None:
    one = start_confined("seq 1 5000")
    assert one.wait(60.0)
    one.stop()  # its keeper is gone too
    size = one.log.size
    one.log.clear()
    assert list(Path(one.folder).glob("log-*")) == []
    assert (one.record().size, one.record().dropped) == (size, size)
