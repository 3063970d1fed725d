"""Contents by their hash."""

import contextlib
import hashlib
import os
import struct
import threading
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.wire import get_msgpack_decoder

# § [store.blobs] Large texts and earlier contents of files, stored once under the hash of their bytes.


_CHUNK_BYTES = 1 << 20
_PACKED = ".z"
_ASIDE = ".aside"
_GATHERED = ".gathered"
_ADOPTED = ".adopted"
_TOGETHER = "-packed"
"""What the folder of packs is called, behind the name of ours."""
_MAX_PACKED_AT_ONCE_BYTES = 1 << 16
"""Up to this size packing costs less than a millisecond; what is larger is packed when there is time."""
_LEVEL = 1
_MIN_PACKED_CONTENTS = 8
"""Contents that get a file each: only more of them are worth a pack."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Blobs:
    """A folder of files whose contents never change. Some are packed, which nobody sees who reads them."""

    def __init__(self, folder: str, *, durable: bool = True) -> None:
        self.folder = folder
        self._durable = durable
        self._unpacked: list[str] = []
        self._packs: Packs | None = None
        self._lent: dict[str, Blobs] = {}
        """Who else has a content, by its hash."""

    def put(self, data: bytes, *, pack: bool = False) -> str:
        """Stores the bytes; the hash to find them by."""
        digest = hashlib.sha256(data).hexdigest()
        self.keep(digest, data, pack=pack)
        return digest

    def keep(self, digest: str, data: bytes, *, pack: bool = False) -> None:
        """Stores bytes whose hash is known."""
        if self._is_there(digest, len(data)):
            return
        if pack and len(data) <= _MAX_PACKED_AT_ONCE_BYTES:
            self._store(self._path(digest) + _PACKED, [zlib.compress(data, _LEVEL)])
            return
        self._store(self._path(digest), [data])
        if pack:
            self._unpacked.append(digest)

    def keep_all(self, contents: Iterable[tuple[str, bytes]]) -> None:
        """Stores small contents whose hashes are known: many of them as one file."""
        new = self._new(contents)
        first = list(islice(new, _MIN_PACKED_CONTENTS))
        if len(first) < _MIN_PACKED_CONTENTS:
            for digest, data in first:
                self.keep(digest, data, pack=True)
        else:
            self.packs.write(chain(first, new))

    def _new(self, contents: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        self.packs.look()
        seen: set[str] = set()
        for digest, data in contents:
            if digest not in seen and not self._is_there(digest, len(data), look=False):
                yield digest, data
            seen.add(digest)

    @property
    def packs(self) -> "Packs":
        """Where many contents of one change are together."""
        if self._packs is None:
            self._packs = Packs(f"{self.folder}{_TOGETHER}", durable=self._durable)
        return self._packs

    def put_pieces(self, pieces: Iterator[bytes]) -> str:
        """Stores a text that comes piece by piece; the hash to find it by."""
        found = hashlib.sha256()

        def counted() -> Iterator[bytes]:
            for piece in pieces:
                found.update(piece)
                yield piece

        gathering = os.path.join(self.folder, f"{os.urandom(32).hex()}{_GATHERED}")
        self._store(gathering, counted())
        os.replace(gathering, self._path(found.hexdigest()))
        return found.hexdigest()

    def adopt(self, path: str) -> str:
        """Takes a file of ours as it is: it is moved here, under a name that is no hash. The name to find it by."""
        name = f"{os.urandom(32).hex()}{_ADOPTED}"
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            os.replace(path, self._path(name))
        except OSError as error:
            raise StoreError(f"a file cannot be kept in {self.folder}: {error.strerror}") from error
        return name

    def keep_file(self, digest: str, descriptor: int) -> None:
        """Stores what a descriptor reads; StoreError when it is not what its hash says."""
        if self._is_there(digest, os.fstat(descriptor).st_size):
            return
        self._store(self._path(digest), _checked(_chunks_of(descriptor), digest))
        self._unpacked.append(digest)

    def borrow(self, lender: "Blobs", digests: Iterable[str]) -> None:
        """Reads contents from another folder where that has them. They do not count as stored here."""
        self._lent.update(dict.fromkeys(digests, lender))

    def give_back(self, lender: "Blobs") -> None:
        """Forgets what was borrowed from another folder."""
        self._lent = {digest: one for digest, one in self._lent.items() if one.folder != lender.folder}

    def keep_borrowed(self, digest: str) -> None:
        """Stores a content here that may be borrowed."""
        if not self.has(digest):
            self._store(self._path(digest), self.chunks(digest))
            self._unpacked.append(digest)

    def open(self, digest: str) -> int:
        """A descriptor for reading a blob; FileNotFoundError when it is gone."""
        try:
            return os.open(self._path(digest), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return self._unpacked_copy(digest)

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The bytes of a blob, piece by piece; StoreError at the end when they are not what was stored."""
        lender = self._lent.get(digest)
        if lender is not None and lender.has(digest):
            return lender.chunks(digest)
        return _checked(self._pieces(digest), digest)

    def has(self, digest: str) -> bool:
        """Whether a blob is there."""
        alone = any(os.path.exists(self._path(digest) + ending) for ending in ("", _PACKED))
        return alone or self.packs.has(digest)

    def missing(self, digests: Collection[str]) -> Iterator[str]:
        """Those of which there is no blob."""
        together = self.packs.holding(digests)
        return (digest for digest in digests if digest not in together and not self.has(digest))

    def pack(self) -> None:
        """Packs what was stored unpacked because there was no time."""
        while self._unpacked:
            digest = self._unpacked.pop()
            with contextlib.suppress(OSError, StoreError):
                self._store(self._path(digest) + _PACKED, _squeezed(self._pieces(digest)))
                os.unlink(self._path(digest))

    def every(self) -> Iterator[tuple[str, str]]:
        """All blobs: hash and path."""
        for name in _names(self.folder):
            yield name.partition(".")[0], os.path.join(self.folder, name)

    def sweep(self, used: set[str], seconds: float) -> None:
        """Removes what is not used, unless somebody asked for it lately."""
        for digest, path in self.every():
            if digest not in used:
                self.remove_old(path, seconds)
        for path in self.packs.unused(used):
            self.remove_old(path, seconds)

    def remove_old(self, path: str, seconds: float) -> None:
        """Removes a file of ours that nobody asked for lately. It is put aside first: who asks now stores it anew."""
        aside = f"{path.removesuffix(_ASIDE)}{_ASIDE}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, aside)
            if time.time() - os.stat(aside).st_mtime > seconds:
                os.unlink(aside)
            elif not path.endswith(_ASIDE):
                os.rename(aside, path)

    def _is_there(self, digest: str, size: int, *, look: bool = True) -> bool:
        """Whether the blob is stored, whole; if so it is made young, so that nobody removes it before it is used."""
        plain, packed = self._path(digest), self._path(digest) + _PACKED
        with contextlib.suppress(OSError):
            if os.stat(plain).st_size == size:
                os.utime(plain)
                return True
        with contextlib.suppress(OSError, StoreError):
            if os.stat(packed).st_size > _MAX_PACKED_AT_ONCE_BYTES or sum(map(len, self.chunks(digest))) == size:
                os.utime(packed)
                return True
        return self.packs.holds(digest, size, look=look)

    def _pieces(self, digest: str) -> Iterator[bytes]:
        together = self.packs.content(digest)
        if together is not None:
            yield together
            return
        try:
            descriptor = os.open(self._path(digest), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = os.open(self._path(digest) + _PACKED, os.O_RDONLY | os.O_CLOEXEC)
            packed = True
        else:
            packed = False
        try:
            yield from _spread(_chunks_of(descriptor)) if packed else _chunks_of(descriptor)
        finally:
            os.close(descriptor)

    def _unpacked_copy(self, digest: str) -> int:
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
                _flush_folder(os.path.dirname(path))
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
                view = memoryview(piece)
                while view:
                    view = view[os.write(descriptor, view) :]
            if self._durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _flush_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _chunks_of(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        yield chunk


def _checked(pieces: Iterator[bytes], digest: str) -> Iterator[bytes]:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
        yield piece
    if found.hexdigest() != digest:
        raise StoreError(f"the kept content {digest[:12]} is not what was stored")


def _squeezed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def _spread(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Unpacks, never more than a piece at a time whatever the packed bytes claim."""
    unpacker = zlib.decompressobj()
    try:
        for packed in pieces:
            piece = unpacker.decompress(packed, _CHUNK_BYTES)
            while piece:
                yield piece
                piece = unpacker.decompress(unpacker.unconsumed_tail, _CHUNK_BYTES)
        yield unpacker.flush()
    except zlib.error as error:
        raise StoreError(f"a kept content cannot be unpacked: {error}") from error


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


# § [store.packs] Packs: many small contents in one file, pressed together, for change sets that touch many files. A
# § file for each would take a block of the disk each, and much of the time that keeping takes. Neighbours are
# § pressed as one, which makes them smaller than each alone. A pack gets its name when it is whole, and never
# § changes.

PACK = ".pack"
_GROUP_BYTES = 1 << 18
"""Bytes that are pressed together: so few that reading one content of them costs little."""
_END = struct.Struct(">QI")
"""Where the table begins, and its checksum."""


class _PackGroup(msgspec.Struct, array_like=True):
    start: int
    length: int
    members: list[tuple[bytes, int]]
    """Hash and size, in the order of the bytes."""


class _PackPosition(NamedTuple):
    pack: str
    start: int
    length: int
    """Of the group, pressed."""
    at: int
    size: int
    """Of the content, in the group."""


_encode = msgspec.msgpack.Encoder().encode
_decode = get_msgpack_decoder(list[_PackGroup]).decode


class Packs:
    """The packs of one folder. Any thread may ask."""

    def __init__(self, folder: str, *, durable: bool) -> None:
        self._folder = folder
        self._durable = durable
        self._lock = threading.Lock()
        """Held while what is known changes."""
        self._known: dict[str, list[_PackGroup]] = {}
        self._places: dict[str, _PackPosition] = {}
        self._seen = -1
        """When the folder was last changed, as of the last look."""
        self._group: tuple[tuple[str, int], bytes] = (("", 0), b"")
        """The last group that was read: who reads one content mostly reads its neighbours too."""

    def write(self, contents: Iterable[tuple[str, bytes]]) -> None:
        """Stores contents under their hashes, as one pack."""
        path = os.path.join(self._folder, f"{os.urandom(16).hex()}{PACK}")
        temporary = f"{path}.{os.urandom(6).hex()}"
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            groups = self._fill(temporary, contents)
            os.rename(temporary, path)
            if self._durable:
                _flush(self._folder)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            if isinstance(error, OSError):
                raise StoreError(f"contents cannot be stored in {self._folder}: {error.strerror}") from error
            raise
        with self._lock:
            self._learn(path, groups)

    def has(self, digest: str) -> bool:
        """Whether a content is in a pack."""
        return self._find(digest) is not None

    def holds(self, digest: str, size: int, *, look: bool = True) -> bool:
        """Whether a content of this size is in a pack; if so the pack is made young, so that nobody removes it. Who
        asks for many looks for new packs once."""
        place = self._find(digest) if look else self._places.get(digest)
        if place is None or place.size != size:
            return False
        try:
            os.utime(place.pack)
        except OSError:
            return False
        return True

    def holding(self, digests: Iterable[str]) -> set[str]:
        """Those that packs have: who asks about many looks once for each pack."""
        self.look()
        places = ((digest, self._places.get(digest)) for digest in digests)
        found = {digest: place.pack for digest, place in places if place is not None}
        there = {pack for pack in set(found.values()) if os.path.exists(pack)}
        return {digest for digest, pack in found.items() if pack in there}

    def content(self, digest: str) -> bytes | None:
        """The bytes of a content; None when no pack has it."""
        place, group = self._places.get(digest), self._group
        if place is None or group[0] != (place.pack, place.start):
            place = self._find(digest)
        if place is None:
            return None
        if group[0] != (place.pack, place.start):
            group = self._group = ((place.pack, place.start), _read_group(place))
        return group[1][place.at : place.at + place.size]

    def unused(self, used: set[str]) -> Iterator[str]:
        """The files of packs of which nothing is used, of those that cannot be read, and of those put aside earlier."""
        self.look()
        for path, groups in list(self._known.items()):
            if not any(digest.hex() in used for group in groups for digest, _ in group.members):
                yield path
        for name in _list_packs(self._folder):
            path = os.path.join(self._folder, name)
            if path not in self._known:
                yield path

    def _fill(self, path: str, contents: Iterable[tuple[str, bytes]]) -> list[_PackGroup]:
        groups: list[_PackGroup] = []
        with open(os.open(path, _NEW, 0o600), "wb") as file:
            members: list[tuple[bytes, int]] = []
            data = bytearray()
            start = 0
            for digest, content in contents:
                members.append((bytes.fromhex(digest), len(content)))
                data += content
                if len(data) >= _GROUP_BYTES:
                    start += _add(file.write(zlib.compress(data, _LEVEL)), start, members, groups)
                    members, data = [], bytearray()
            if members:
                start += _add(file.write(zlib.compress(data, _LEVEL)), start, members, groups)
            table = _encode(groups)
            file.write(table + _END.pack(start, zlib.crc32(table)))
            if self._durable:
                file.flush()
                os.fsync(file.fileno())
        return groups

    def _find(self, digest: str) -> _PackPosition | None:
        place = self._places.get(digest)
        if place is None or not os.path.exists(place.pack):
            self.look()
            place = self._places.get(digest)
        return place

    def look(self) -> None:
        """Learns of packs that others wrote, and forgets those that are gone."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        try:
            changed = os.stat(self._folder).st_mtime_ns
        except OSError:
            changed = -1
        if changed == self._seen and time.time_ns() - changed > 1_000_000_000:
            return  # nothing came or went since
        self._seen = changed
        there = {os.path.join(self._folder, name) for name in _list_packs(self._folder) if name.endswith(PACK)}
        for path in self._known.keys() - there:
            self._forget(path)
        for path in there - self._known.keys():
            with contextlib.suppress(OSError, ValueError, struct.error, msgspec.DecodeError):
                self._learn(path, _read_table(path))

    def _learn(self, path: str, groups: list[_PackGroup]) -> None:
        self._known[path] = groups
        for group in groups:
            at = 0
            for digest, size in group.members:
                self._places[digest.hex()] = _PackPosition(path, group.start, group.length, at, size)
                at += size

    def _forget(self, path: str) -> None:
        for group in self._known.pop(path):
            for digest, _ in group.members:
                place = self._places.get(digest.hex())
                if place is not None and place.pack == path:
                    del self._places[digest.hex()]


def _add(length: int, start: int, members: list[tuple[bytes, int]], groups: list[_PackGroup]) -> int:
    groups.append(_PackGroup(start, length, members))
    return length


def _read_table(path: str) -> list[_PackGroup]:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - _END.size)
        start, checksum = _END.unpack(file.read())
        file.seek(start)
        table = file.read(size - _END.size - start)
    if zlib.crc32(table) != checksum:
        raise ValueError(path)
    return _decode(table)


def _read_group(place: _PackPosition) -> bytes:
    try:
        with open(place.pack, "rb") as file:
            file.seek(place.start)
            return zlib.decompress(file.read(place.length))
    except (OSError, zlib.error) as error:
        raise StoreError(f"a kept content cannot be unpacked: {error}") from error


def _list_packs(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _flush(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
