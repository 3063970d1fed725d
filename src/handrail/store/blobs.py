"""Contents that are stored once under the SHA-256 of their bytes.

Contents to pack of up to 64 KiB go to a database. All others are a file each, compressed or not.
"""

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from handrail.kernel.files import write_all
from handrail.protocol.digest import sha256
from handrail.protocol.errors import StoreError
from handrail.store.database import CONTENTS, Database, Durability, copy_database
from handrail.store.state_dir import flush_folder

if TYPE_CHECKING:
    from handrail.store.pack_files import PackFiles

_CHUNK_BYTES = 1 << 20
_BATCH_BYTES = 4 << 20
"""Bytes of small contents that are written in one transaction."""
_PACKED = ".z"
_ASIDE = ".aside"
_MAX_SMALL_BYTES = 1 << 16
_MIN_DATABASE_CONTENTS = 8
"""For fewer contents, such as those of a preview, no database is made."""
_DATABASE_NAME = "small.db"
_PACK_FILES_SUFFIX = "-packed"
"""Comes after the name of the blob folder, in the name of the folder of pack files."""
_GROUP_BYTES = 1 << 18
"""Bytes of small contents that are compressed together. Reading one content decompresses its group."""
_HASH_DIGITS = 64
_TOUCH = "UPDATE content SET used = ? WHERE hash = ? AND size = ?"
_INSERT = "INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?, ?)"
_FIND = "SELECT pack, start, size FROM content WHERE hash = ?"
_IS_MOSTLY_FREE = "SELECT freelist_count * 2 > page_count FROM pragma_freelist_count, pragma_page_count"
_LEVEL = 1
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Blobs:
    def __init__(self, folder: str, durability: Durability = "power") -> None:
        self.folder = folder
        self._durable = durability == "power"
        self._unpacked: list[str] = []
        self._small = _SmallContents(folder, durability)
        self._lenders: dict[str, Blobs] = {}
        """Folders that have a content, by its hash."""

    def put(self, data: bytes, *, pack: bool = False) -> str:
        digest = sha256(data).hexdigest()
        self.keep(digest, data, pack=pack)
        return digest

    def keep(self, digest: str, data: bytes, *, pack: bool = False) -> None:
        if self._has_file(digest, len(data)):
            return
        if pack and len(data) <= _MAX_SMALL_BYTES:
            self._pack_small([(digest, data)], replace=not self._is_intact(digest, data))
            return
        self._store(self._path(digest), [data])
        if pack:
            self._unpacked.append(digest)

    def keep_all(self, contents: Iterable[tuple[str, bytes]]) -> None:
        """Stores many contents to pack, whose hashes are known."""
        batch: list[tuple[str, bytes]] = []
        size = 0
        for digest, data in contents:
            if len(data) > _MAX_SMALL_BYTES:
                self.keep(digest, data, pack=True)
                continue
            batch.append((digest, data))
            size += len(data)
            if size >= _BATCH_BYTES:
                self._pack_small(batch)
                batch, size = [], 0
        if len(batch) >= _MIN_DATABASE_CONTENTS or os.path.exists(self._path(_DATABASE_NAME)):
            self._pack_small(batch)
        else:
            self._store_compressed(batch)

    def put_pieces(self, pieces: Iterator[bytes]) -> str:
        """Stores a text that comes piece by piece and returns its hash."""
        digest = sha256()

        def hash_pieces() -> Iterator[bytes]:
            for piece in pieces:
                digest.update(piece)
                yield piece

        gathered = self._path(f"{os.urandom(32).hex()}.gathered")
        self._store(gathered, hash_pieces())
        os.replace(gathered, self._path(digest.hexdigest()))
        return digest.hexdigest()

    def adopt(self, path: str) -> str:
        """Moves a file here without reading it. Returns the name to find it by, which is not a hash."""
        name = f"{os.urandom(32).hex()}.adopted"
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            os.replace(path, self._path(name))
        except OSError as error:
            raise StoreError(f"a file cannot be stored in {self.folder}: {error.strerror}") from error
        return name

    def keep_file(self, digest: str, descriptor: int) -> None:
        """Stores the content of an open file. StoreError if its hash is another."""
        if not self._has_file(digest, os.fstat(descriptor).st_size):
            self._store(self._path(digest), _check(_read_chunks(descriptor), digest))
            self._unpacked.append(digest)

    def borrow(self, lender: "Blobs", digests: Iterable[str]) -> None:
        """Reads contents from another folder as long as that has them. They do not count as stored here."""
        self._lenders.update(dict.fromkeys(digests, lender))

    def give_back(self, lender: "Blobs") -> None:
        self._lenders = {digest: holder for digest, holder in self._lenders.items() if holder.folder != lender.folder}

    def keep_borrowed(self, digest: str) -> None:
        """Stores a content here that may be borrowed."""
        if not self.has(digest):
            self._store(self._path(digest), self.chunks(digest))
            self._unpacked.append(digest)

    def open(self, digest: str) -> int:
        """A descriptor for reading a blob. FileNotFoundError if it is gone."""
        try:
            return os.open(self._path(digest), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return self._open_copy(digest)

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The bytes of a blob, piece by piece. StoreError at the end if they are damaged."""
        lender = self._lenders.get(digest)
        if lender is not None and lender.has(digest):
            return lender.chunks(digest)
        return _check(self._read(digest), digest)

    def has(self, digest: str) -> bool:
        return any(os.path.exists(self._path(digest) + ending) for ending in ("", _PACKED)) or self._small.has(digest)

    def list_missing(self, digests: Collection[str]) -> Iterator[str]:
        return (digest for digest in digests if not self.has(digest))

    def pack(self) -> None:
        """Compresses large contents that were stored as they are, to save time then."""
        while self._unpacked:
            digest = self._unpacked.pop()
            with contextlib.suppress(OSError, StoreError):
                self._store(self._path(digest) + _PACKED, _compress(self._read(digest)))
                os.unlink(self._path(digest))

    def files(self) -> Iterator[tuple[str, str]]:
        """The blobs that are files: hash and path."""
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            if not name.startswith(_DATABASE_NAME):
                yield name.partition(".")[0], os.path.join(self.folder, name)

    def sweep(self, used: set[str], seconds: float) -> None:
        """Removes unused blobs that were not stored within `seconds`."""
        for digest, path in self.files():
            if digest not in used:
                self.remove_old(path, seconds)
        self._small.sweep(used, seconds)

    def remove_old(self, path: str, seconds: float) -> None:
        """Removes a file that was not stored within `seconds`. Renamed first: a concurrent store makes a new one."""
        aside = f"{path.removesuffix(_ASIDE)}{_ASIDE}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, aside)
            if time.time() - os.stat(aside).st_mtime > seconds:
                os.unlink(aside)
            elif not path.endswith(_ASIDE):
                os.rename(aside, path)

    def close(self) -> None:
        self._small.close()

    def _pack_small(self, contents: list[tuple[str, bytes]], *, replace: bool = False) -> None:
        try:
            self._small.add(contents, replace=replace)
        except StoreError:  # the database is damaged or locked for long
            self._store_compressed(contents)

    def _store_compressed(self, contents: list[tuple[str, bytes]]) -> None:
        for digest, data in contents:
            self._store(self._path(digest) + _PACKED, [zlib.compress(data, _LEVEL)])

    def _is_intact(self, digest: str, data: bytes) -> bool:
        try:
            return self._small.read(digest) == data
        except StoreError:
            return False

    def _has_file(self, digest: str, size: int) -> bool:
        """Whether an undamaged file has the blob. It becomes young, so that no sweep removes it before it is used."""
        plain, packed = self._path(digest), self._path(digest) + _PACKED
        with contextlib.suppress(OSError):
            if os.stat(plain).st_size == size:
                os.utime(plain)
                return True
        with contextlib.suppress(OSError, StoreError):
            if os.stat(packed).st_size > _MAX_SMALL_BYTES or sum(map(len, self.chunks(digest))) == size:
                os.utime(packed)
                return True
        return False

    def _read(self, digest: str) -> Iterator[bytes]:
        small = self._small.read(digest)
        if small is not None:
            yield small
            return
        try:
            descriptor, is_packed = os.open(self._path(digest), os.O_RDONLY | os.O_CLOEXEC), False
        except FileNotFoundError:
            descriptor, is_packed = os.open(self._path(digest) + _PACKED, os.O_RDONLY | os.O_CLOEXEC), True
        try:
            yield from _decompress(_read_chunks(descriptor)) if is_packed else _read_chunks(descriptor)
        finally:
            os.close(descriptor)

    def _open_copy(self, digest: str) -> int:
        import tempfile  # noqa: PLC0415  few need it

        with tempfile.TemporaryFile() as copy:
            for piece in self.chunks(digest):
                copy.write(piece)
            copy.flush()
            copy.seek(0)
            return os.dup(copy.fileno())

    def _path(self, digest: str) -> str:
        return os.path.join(self.folder, digest)

    def _store(self, path: str, pieces: "Iterator[bytes] | list[bytes]") -> None:
        temporary = f"{path}.{os.urandom(6).hex()}"
        try:
            try:
                self._write(temporary, pieces)
            except FileNotFoundError:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                self._write(temporary, pieces)
            os.replace(temporary, path)
            if self._durable:
                flush_folder(self.folder)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            if isinstance(error, OSError):
                raise StoreError(f"a blob cannot be stored in {self.folder}: {error.strerror}") from error
            raise

    def _write(self, path: str, pieces: "Iterator[bytes] | list[bytes]") -> None:
        descriptor = os.open(path, _NEW, 0o600)
        try:
            for piece in pieces:
                write_all(descriptor, memoryview(piece))
            if self._durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _SmallContents:
    """The small contents of one blob folder, in a database. Any thread and any process may use them.

    Neighbours are compressed as one group, which is smaller and faster than each alone.
    """

    def __init__(self, folder: str, durability: Durability) -> None:
        self._folder = folder
        self._path = os.path.join(folder, _DATABASE_NAME)
        self._durability: Durability = durability
        self._opening = threading.Lock()
        self._database: Database | None = None
        self._old_files = _open_pack_files(f"{folder}{_PACK_FILES_SUFFIX}")
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
            return self._old_files.read(digest) if self._old_files else None
        pack, start, size = row
        group = self._group
        if group[0] != pack:
            found = self._open().row("SELECT data FROM pack WHERE id = ?", (pack,))
            group = self._group = pack, _decompress_group(found[0] if found else b"")
        return group[1][start : start + size]

    def has(self, digest: str) -> bool:
        return self._find(digest) is not None or (self._old_files is not None and self._old_files.has(digest))

    def sweep(self, used: set[str], seconds: float) -> None:
        if self._old_files is not None:
            self._old_files.sweep(used, seconds)
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
            with contextlib.suppress(StoreError):  # a full disk, or a busy database: the next sweep tries again
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
        with contextlib.suppress(StoreError):
            row = self._open().row(_FIND, (bytes.fromhex(digest),))
            return (row[0], row[1], row[2]) if row else None
        return None


def _open_pack_files(folder: str) -> "PackFiles | None":
    if not os.path.isdir(folder):
        return None
    from handrail.store.pack_files import PackFiles  # noqa: PLC0415  only for the state of earlier versions

    return PackFiles(folder)


def _decompress_group(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except (zlib.error, TypeError) as error:  # TypeError: a damaged row holds no bytes
        raise StoreError(f"a stored content cannot be unpacked: {error}") from error


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


def copy_blobs(source: str, target: str) -> None:
    """Copies a folder of blobs that may be in use."""
    import shutil  # noqa: PLC0415  slow to load, and few copy

    database = os.path.join(source, _DATABASE_NAME)
    for ending in ("", _PACK_FILES_SUFFIX):
        if os.path.isdir(source + ending):
            ignored = shutil.ignore_patterns(f"{_DATABASE_NAME}*")
            shutil.copytree(source + ending, target + ending, ignore=ignored, dirs_exist_ok=True)
    if os.path.exists(database):
        copy_database(database, os.path.join(target, _DATABASE_NAME))


def _read_chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        yield chunk


def _check(pieces: Iterator[bytes], digest: str) -> Iterator[bytes]:
    """Passes pieces on. StoreError at the end if their hash is another."""
    actual = sha256()
    for piece in pieces:
        actual.update(piece)
        yield piece
    if actual.hexdigest() != digest:
        raise StoreError(f"the stored content {digest[:12]} was changed in the store")


def _compress(pieces: Iterator[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(_LEVEL)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def _decompress(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Decompresses into pieces of limited size, even if the compressed bytes claim more."""
    decompressor = zlib.decompressobj()
    try:
        for packed in pieces:
            piece = decompressor.decompress(packed, _CHUNK_BYTES)
            while piece:
                yield piece
                piece = decompressor.decompress(decompressor.unconsumed_tail, _CHUNK_BYTES)
        yield decompressor.flush()
    except zlib.error as error:
        raise StoreError(f"a stored content cannot be unpacked: {error}") from error
