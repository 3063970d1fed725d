"""The pack files of earlier versions: compressed groups, then a table of them, then where the table starts."""

import os
import struct
import time
import zlib
from contextlib import suppress

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.wire import decode_msgpack

_PACK_NAME = ".pack"
_END = struct.Struct(">QI")
"""The start of the table, and its checksum."""


class _FileGroup(msgspec.Struct, array_like=True):
    start: int
    length: int
    members: list[tuple[bytes, int]]
    """Hash and size, in the order of the bytes."""


class _FilePosition(msgspec.Struct, frozen=True):
    path: str
    group: _FileGroup
    start: int
    size: int
    """Of the content in its group."""


class PackFiles:
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
                    group = self._group = key, zlib.decompress(file.read(position.group.length))
            except (OSError, zlib.error) as error:
                raise StoreError(f"a stored content cannot be unpacked: {error}") from error
        return group[1][position.start : position.start + position.size]

    def sweep(self, used: set[str], seconds: float) -> None:
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
