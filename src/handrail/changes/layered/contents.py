"""The contents of files, read piece by piece where they are large."""

import hashlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from handrail.workspace.text import SAMPLE_BYTES

MAX_SINGLE_READ_BYTES = 1 << 18
"""Bytes up to which a file is read in one piece."""
_PIECE_BYTES = 1 << 18


class FileDigest(NamedTuple):
    """What a file holds."""

    hash: str
    size: int
    start: bytes
    """Its first bytes."""


def read_digest(descriptor: int, size: int) -> FileDigest:
    """Reads a file from where its descriptor stands, which is its beginning; `size`: what it most likely has."""
    if size <= MAX_SINGLE_READ_BYTES:
        return _of_bytes(_whole(descriptor, size))
    digest, found, start = hashlib.sha256(), 0, b""
    for piece in _pieces(descriptor):
        digest.update(piece)
        start = start or piece[:SAMPLE_BYTES]
        found += len(piece)
    return FileDigest(digest.hexdigest(), found, start)


def compare_contents(old: int, new: int, size: int) -> tuple[FileDigest, FileDigest] | None:
    """What two files of one size hold; None where it is the same."""
    if size <= MAX_SINGLE_READ_BYTES:
        before, after = _whole(old, size), _whole(new, size)
        return None if before == after else (_of_bytes(before), _of_bytes(after))
    if all(one == other for one, other in zip(_pieces(old), _pieces(new), strict=False)):
        return None
    os.lseek(old, 0, os.SEEK_SET)
    os.lseek(new, 0, os.SEEK_SET)
    return read_digest(old, size), read_digest(new, size)


def _of_bytes(data: bytes) -> FileDigest:
    return FileDigest(hashlib.sha256(data).hexdigest(), len(data), data[:SAMPLE_BYTES])


def _whole(descriptor: int, size: int) -> bytes:
    """All of it: one byte more than its size shows that it did not grow."""
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    return data + b"".join(_pieces(descriptor))


def _pieces(descriptor: int) -> Iterator[bytes]:
    while piece := os.read(descriptor, _PIECE_BYTES):
        yield piece
