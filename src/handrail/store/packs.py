"""Small contents, compressed in groups in a database.

Neighbours are compressed as one group, which is smaller and faster than each alone. Earlier versions wrote groups to
pack files, which are still read.
"""

import os
import struct
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.wire import decode_msgpack
from handrail.store.database import CONTENTS, Database, Durability
from handrail.store.state_dir import flush_folder

DATABASE_NAME = "small.db"
PACK_FILES_SUFFIX = "-packed"
"""Comes after the name of the blob folder, in the name of the folder of pack files."""
_GROUP_BYTES = 1 << 18
"""Bytes that are compressed together. Reading one content decompresses its group."""
_LEVEL = 1
_HASH_DIGITS = 64
_TOUCH = "UPDATE content SET used = ? WHERE hash = ? AND size = ?"
_INSERT = "INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?, ?)"
_FIND = "SELECT pack, start, size FROM content WHERE hash = ?"
_IS_MOSTLY_FREE = "SELECT freelist_count * 2 > page_count FROM pragma_freelist_count, pragma_page_count"


class Packs:
    """The small contents of one blob folder. Any thread and any process may use them."""

    def __init__(self, folder: str, durability: Durability) -> None:
        self._folder = folder
        self._path = os.path.join(folder, DATABASE_NAME)
        self._durability: Durability = durability
        self._opening = threading.Lock()
        self._database: Database | None = None
        self._files = _PackFiles(f"{folder}{PACK_FILES_SUFFIX}")
        self._group: tuple[int, bytes] = (0, b"")
        """The last group that was read: its neighbours are mostly read next."""

    def add(self, contents: Iterable[tuple[str, bytes]], *, replace: bool = False) -> None:
        """Stores contents under their hashes in one transaction. Stored ones become young, or are replaced."""
        now, database = int(time.time()), self._open()
        with database.lock, database.transaction:
            execute = database.execute
            rows = [(bytes.fromhex(digest), data) for digest, data in dict(contents).items()]
            if not replace:
                rows = [(key, data) for key, data in rows if not execute(_TOUCH, (now, key, len(data))).rowcount]
            for group in _split_groups(rows):
                data = zlib.compress(b"".join(data for _, data in group), _LEVEL)
                pack, start = execute("INSERT INTO pack (data) VALUES (?)", (data,)).lastrowid, 0
                for key, data in group:
                    execute(_INSERT, (key, len(data), pack, start, now))
                    start += len(data)

    def read(self, digest: str) -> bytes | None:
        """The content. None if it is not stored. StoreError if it is damaged."""
        row = self._find(digest)
        if row is None:
            return self._files.read(digest)
        pack, start, size = row
        group = self._group
        if group[0] != pack:
            group = self._group = pack, self._read_group(pack)
        return group[1][start : start + size]

    def has(self, digest: str) -> bool:
        return self._find(digest) is not None or self._files.has(digest)

    def sweep(self, used: set[str], seconds: float) -> None:
        """Removes unused contents that were not added within `seconds`."""
        self._files.sweep(used, seconds)
        if self._database is None and not os.path.exists(self._path):
            return
        database = self._open()
        with database.lock, database.transaction:
            rows = database.execute("SELECT hash FROM content WHERE used < ?", (time.time() - seconds,)).fetchall()
            for (key,) in rows:
                if key.hex() not in used:
                    database.execute("DELETE FROM content WHERE hash = ?", (key,))
            database.execute("DELETE FROM pack WHERE id NOT IN (SELECT pack FROM content)")
        if database.row(_IS_MOSTLY_FREE) == (1,):
            with suppress(StoreError):  # a full disk, or a busy database: the next sweep tries again
                database.run("VACUUM")

    def close(self) -> None:
        """Closes the database. The next use opens it again."""
        with self._opening:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    def _open(self) -> Database:
        with self._opening:
            if self._database is None:
                try:
                    os.makedirs(self._folder, mode=0o700, exist_ok=True)
                except OSError as error:
                    raise StoreError(f"the folder {self._folder} cannot be made: {error.strerror}") from error
                self._database = Database(self._path, self._durability, CONTENTS)
                if self._durability == "power":
                    flush_folder(self._folder)
            return self._database

    def _find(self, digest: str) -> tuple[int, int, int] | None:
        """The pack, start and size of a content. A database that cannot be read has none."""
        if len(digest) != _HASH_DIGITS or (self._database is None and not os.path.exists(self._path)):
            return None
        with suppress(StoreError):
            row = self._open().row(_FIND, (bytes.fromhex(digest),))
            return (row[0], row[1], row[2]) if row else None
        return None

    def _read_group(self, pack: int) -> bytes:
        row = self._open().row("SELECT data FROM pack WHERE id = ?", (pack,))
        return _decompress(row[0] if row else b"")


def _split_groups(contents: list[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    group: list[tuple[bytes, bytes]] = []
    size = 0
    for key, data in contents:
        group.append((key, data))
        size += len(data)
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _decompress(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except (zlib.error, TypeError) as error:  # TypeError: a damaged row holds no bytes
        raise StoreError(f"a kept content cannot be unpacked: {error}") from error


# The pack files of earlier versions: compressed groups, then a table of them, then where the table starts.

_PACK_NAME = ".pack"
_END = struct.Struct(">QI")
"""The start of the table, and its checksum."""


class _FileGroup(msgspec.Struct, array_like=True):
    start: int
    length: int
    members: list[tuple[bytes, int]]
    """Hash and size, in the order of the bytes."""


class _FilePosition(NamedTuple):
    path: str
    group: _FileGroup
    start: int
    size: int
    """Of the content in its group."""


class _PackFiles:
    """The pack files of one folder. They are only read and swept."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._positions: dict[str, _FilePosition] = {}
        self._changed = -1
        """The time of the folder when the positions were read."""
        self._group: tuple[tuple[str, int], bytes] = (("", 0), b"")

    def has(self, digest: str) -> bool:
        position = self._load_index().get(digest)
        return position is not None and os.path.exists(position.path)

    def read(self, digest: str) -> bytes | None:
        """The content. None if no pack file has it. StoreError if it is damaged."""
        position = self._load_index().get(digest)
        if position is None:
            return None
        group, key = self._group, (position.path, position.group.start)
        if group[0] != key:
            try:
                with open(position.path, "rb") as file:
                    file.seek(position.group.start)
                    group = self._group = key, _decompress(file.read(position.group.length))
            except OSError as error:
                raise StoreError(f"a kept content cannot be unpacked: {error}") from error
        return group[1][position.start : position.start + position.size]

    def sweep(self, used: set[str], seconds: float) -> None:
        """Removes the files without used contents."""
        used_paths = {position.path for digest, position in self._load_index().items() if digest in used}
        for path in self._list_paths():
            with suppress(FileNotFoundError):
                if path not in used_paths and time.time() - os.stat(path).st_mtime > seconds:
                    os.unlink(path)

    def _list_paths(self) -> list[str]:
        try:
            return [os.path.join(self._folder, name) for name in os.listdir(self._folder)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _load_index(self) -> dict[str, _FilePosition]:
        try:
            changed = os.stat(self._folder).st_mtime_ns
        except OSError:
            return {}
        if changed != self._changed:
            self._changed, positions = changed, dict[str, _FilePosition]()
            for path in self._list_paths():
                with suppress(OSError, ValueError, struct.error, msgspec.DecodeError):
                    positions.update(_read_positions(path))
            self._positions = positions
        return self._positions


def _read_positions(path: str) -> dict[str, _FilePosition]:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - _END.size)
        start, checksum = _END.unpack(file.read())
        file.seek(start)
        table = file.read(size - _END.size - start)
    if not path.endswith(_PACK_NAME) or zlib.crc32(table) != checksum:
        raise ValueError(path)
    positions: dict[str, _FilePosition] = {}
    for group in decode_msgpack(table, list[_FileGroup]):
        start = 0
        for digest, length in group.members:
            positions[digest.hex()] = _FilePosition(path, group, start, length)
            start += length
    return positions
