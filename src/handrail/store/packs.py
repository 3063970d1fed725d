"""Packs: many small contents in one file, pressed together, for change sets that touch many files.

A file for each would take a block of the disk each, and much of the time that keeping takes. Neighbours are pressed
as one, which makes them smaller than each alone. A pack gets its name when it is whole, and never changes.
"""

import contextlib
import os
import struct
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from handrail.protocol.error import StoreError
from handrail.protocol.reading import get_msgpack_decoder

PACK = ".pack"
_GROUP_BYTES = 1 << 18
"""Bytes that are pressed together: so few that reading one content of them costs little."""
_LEVEL = 1
_END = struct.Struct(">QI")
"""Where the table begins, and its checksum."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


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
