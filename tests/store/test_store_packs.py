"""Small contents are stored together in a database, and found, mended and swept like any other."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.errors import StoreError
from handrail.store.blobs import Blobs, copy_blobs

EARLIER = Path(__file__).parent / "history_with_packs"
"""Written by the version that stored small contents in pack files and in a file each."""


def hashed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def contents(number: int) -> Iterator[tuple[str, bytes]]:
    for each in range(number):
        data = f"line {each} of many that look alike\n".encode() * (each % 50)
        yield hashed(data), data


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def stored(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "small.db")) as database:
        return database.execute("SELECT count(*) FROM content").fetchone()[0]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], Blobs]]:
    """Opens the same folder once more, as another process would."""
    every: list[Blobs] = []

    def open_blobs() -> Blobs:
        every.append(Blobs(str(tmp_path / "blobs"), "crash"))
        return every[-1]

    yield open_blobs
    for one in every:
        one.close()


Opened = Callable[[], Blobs]


def test_many_contents_become_one_file_and_every_one_is_found_again(tmp_path: Path, opened: Opened) -> None:
    blobs = opened()
    blobs.keep_all(contents(1_000))
    blobs.close()
    assert [path.name for path in files(tmp_path)] == ["small.db"]
    assert files(tmp_path)[0].stat().st_mode & 0o077 == 0
    again = opened()
    for digest, data in contents(1_000):
        assert again.has(digest)
        assert b"".join(again.chunks(digest)) == data
        with open(again.open(digest), "rb") as file:
            assert file.read() == data


def test_a_pack_is_smaller_than_every_content_packed_by_itself(tmp_path: Path, opened: Opened) -> None:
    kept = ["\n".join(map(str, range(each, each + 300))).encode() for each in range(1_000)]
    blobs = opened()
    blobs.keep_all((hashed(data), data) for data in kept)
    blobs.close()
    assert sum(path.stat().st_size for path in files(tmp_path)) <= sum(len(zlib.compress(data)) for data in kept)


def test_who_asks_about_many_is_told_which_are_missing(tmp_path: Path, opened: Opened) -> None:
    blobs = opened()
    blobs.keep_all(contents(100))
    alone, never = hashed(b"alone"), hashed(b"never kept")
    blobs.keep(alone, b"alone")
    packed = [digest for digest, _ in contents(100)]
    assert list(blobs.list_missing([*packed, never, alone])) == [never]
    blobs.close()
    (tmp_path / "blobs" / "small.db").unlink()
    assert set(blobs.list_missing([*packed, alone])) == set(packed)


def test_what_is_kept_already_is_not_kept_again(tmp_path: Path, opened: Opened) -> None:
    blobs = opened()
    blobs.keep_all(contents(100))
    with closing(sqlite3.connect(tmp_path / "blobs" / "small.db")) as database:
        before = database.execute("SELECT * FROM pack").fetchall()
        opened().keep_all(contents(100))
        digest, data = list(contents(100))[50]
        blobs.keep(digest, data, pack=True)
        assert database.execute("SELECT * FROM pack").fetchall() == before


def test_a_content_that_another_process_stored_is_found_without_opening_anew(opened: Opened) -> None:
    blobs = opened()
    digest, data = list(contents(100))[-1]
    assert not blobs.has(digest)
    opened().keep_all(contents(100))
    assert b"".join(blobs.chunks(digest)) == data


def test_what_is_not_used_is_swept_unless_it_is_young(tmp_path: Path, opened: Opened) -> None:
    blobs = opened()
    blobs.keep_all(contents(100))
    digests = [digest for digest, _ in contents(100)]
    blobs.sweep(set(), seconds=3_600)
    assert blobs.has(digests[8]), "young ones may yet get their change"
    blobs.sweep({digests[7]}, seconds=-1)
    assert not blobs.has(digests[8])
    assert b"".join(blobs.chunks(digests[7])) == dict(contents(100))[digests[7]]
    blobs.sweep(set(), seconds=-1)
    assert stored(tmp_path / "blobs") == 0


def test_a_content_that_is_stored_again_becomes_young(tmp_path: Path, opened: Opened) -> None:
    blobs = opened()
    digest = blobs.put(b"content", pack=True)
    with closing(sqlite3.connect(tmp_path / "blobs" / "small.db", isolation_level=None)) as database:
        database.execute("UPDATE content SET used = used - 4000")
        blobs.put(b"content", pack=True)
        blobs.sweep(set(), seconds=3_600)
        assert blobs.has(digest)
        database.execute("UPDATE content SET used = used - 4000")
    blobs.sweep(set(), seconds=3_600)
    assert not blobs.has(digest)


def test_a_sweep_gives_room_back(tmp_path: Path, opened: Opened) -> None:
    blobs = opened()
    blobs.keep_all((hashed(data), data) for data in (os.urandom(10_000) for _ in range(100)))
    blobs.sweep(set(), seconds=-1)
    blobs.close()
    assert sum(path.stat().st_size for path in files(tmp_path)) < 100_000


@pytest.mark.parametrize("cut", [0, 10, 5_000])
def test_a_database_that_was_damaged_is_never_taken_for_what_was_stored(
    tmp_path: Path, opened: Opened, cut: int
) -> None:
    blobs = opened()
    blobs.keep_all(contents(100))
    blobs.close()
    database = tmp_path / "blobs" / "small.db"
    database.write_bytes(database.read_bytes()[:cut].replace(b"SQLite", b"damage"))
    assert not any(blobs.has(digest) for digest, _ in contents(100))
    blobs.keep_all(contents(100))
    digest, data = list(contents(100))[60]
    assert b"".join(blobs.chunks(digest)) == data


@pytest.mark.parametrize("small", [True, False])
def test_bytes_that_changed_are_noticed_and_mended(tmp_path: Path, opened: Opened, small: bool) -> None:
    blobs = opened()
    blobs.keep_all(contents(100))
    digest, data = list(contents(100))[40]
    with closing(sqlite3.connect(tmp_path / "blobs" / "small.db", isolation_level=None)) as database:
        damage = "substr(data, 1, 100) || x'00' || substr(data, 102)" if small else "x''"
        database.execute(f"UPDATE pack SET data = CAST({damage} AS BLOB)")
    with pytest.raises(StoreError):
        b"".join(blobs.chunks(digest))
    blobs.keep(digest, data, pack=True)
    assert b"".join(blobs.chunks(digest)) == data


KILLED = """
import hashlib, os, signal, sys
from handrail.store.blobs import Blobs

def contents():
    for each in range(int(sys.argv[2])):
        data = f"{each}\\n".encode() * 10_000
        yield hashlib.sha256(data).hexdigest(), data
    os.kill(os.getpid(), signal.SIGKILL)

Blobs(sys.argv[1], "crash").keep_all(contents())
"""


@pytest.mark.parametrize("number", [1, 300])
def test_a_process_that_is_killed_leaves_only_intact_contents(tmp_path: Path, opened: Opened, number: int) -> None:
    blobs = opened()
    digest = blobs.put(b"from before", pack=True)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "blobs"), str(number)], check=False)
    assert b"".join(blobs.chunks(digest)) == b"from before"
    made = [f"{each}\n".encode() * 10_000 for each in range(number)]
    found = [data for data in made if blobs.has(hashed(data))]
    assert all(b"".join(blobs.chunks(hashed(data))) == data for data in found)
    blobs.keep_all((hashed(data), data) for data in made)
    assert not list(blobs.list_missing([hashed(data) for data in made]))


def test_several_processes_store_at_once(tmp_path: Path, opened: Opened) -> None:
    program = KILLED.replace("    os.kill(os.getpid(), signal.SIGKILL)\n", "")
    command = [sys.executable, "-c", program, str(tmp_path / "blobs"), "200"]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert stored(tmp_path / "blobs") == 200
    data = b"7\n" * 10_000
    assert b"".join(opened().chunks(hashed(data))) == data


def test_a_folder_in_use_is_copied(tmp_path: Path, opened: Opened) -> None:
    blobs = opened()
    blobs.keep_all(contents(100))
    large = blobs.put(b"large" * 20_000, pack=True)
    copy_blobs(str(tmp_path / "blobs"), str(tmp_path / "copy"))
    copy = Blobs(str(tmp_path / "copy"))
    assert not list(copy.list_missing([large, *(digest for digest, _ in contents(100))]))
    copy.close()


def test_pack_files_of_earlier_versions_are_read_and_swept(tmp_path: Path, opened: Opened) -> None:
    shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    blobs = opened()
    changed = [f"changed {number}\n".encode() for number in range(10)]
    assert not list(blobs.list_missing([hashed(data) for data in changed]))
    assert [b"".join(blobs.chunks(hashed(data))) for data in changed] == changed
    [pack] = (tmp_path / "blobs-packed").iterdir()
    os.utime(pack, (0, 0))
    blobs.sweep({hashed(changed[3])}, seconds=3_600)
    assert pack.exists()
    blobs.sweep(set(), seconds=3_600)
    assert not pack.exists()
    assert not blobs.has(hashed(changed[3]))


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_a_damaged_pack_file_has_nothing(tmp_path: Path, opened: Opened, cut: int) -> None:
    shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    [pack] = (tmp_path / "blobs-packed").iterdir()
    os.truncate(pack, cut)
    blobs = opened()
    assert not any(blobs.has(hashed(f"changed {number}\n".encode())) for number in range(10))
    blobs.sweep(set(), seconds=-1)
    assert not pack.exists()


def test_a_history_of_an_earlier_version_is_undone_and_redone(tmp_path: Path) -> None:
    from handrail.store.state_dir import StateFolder

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    old = {f"small{number}.txt": f"content {number}\n" * (number + 1) for number in range(10)}
    old["large.txt"] = "a line of a large file\n" * 5_000
    new = {f"small{number}.txt": f"changed {number}\n" for number in range(10)}
    new["large.txt"] = "changed\n" * 10_000
    for name, text in old.items():
        (workspace / name).write_text(text)
    state = StateFolder(str(tmp_path / "state"))
    shutil.copytree(EARLIER, state.changes(str(workspace)), dirs_exist_ok=True)
    with Handrail(workspace, mode="full", session="earlier", state_dir=tmp_path / "state") as rail:
        assert rail.undo(12).ok
        assert {name: (workspace / name).read_text() for name in new} == new
        assert rail.undo(13).ok
        assert {name: (workspace / name).read_text() for name in old} == old
