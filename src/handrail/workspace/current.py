"""What a file is at a moment, and whether it still is that."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.content import start_hash
from handrail.workspace.errors import clip_path
from handrail.workspace.text import SAMPLE_BYTES

HASH_DIGITS = 16
"""Of a hash, in the name of an unfinished file."""
_CHUNK_BYTES = 1 << 20
_COMPARED_CHUNK_BYTES = 1 << 16
"""Bytes compared at a time: so few that they stay in the cache."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class FileSnapshot(msgspec.Struct, frozen=True):
    """The bytes a write is about to replace."""

    status: os.stat_result
    digest: str | Callable[[], str]
    """The hash, or how to wait for it."""
    data: bytes | None
    """None above the limit that was asked for."""
    start: bytes = b""
    """The first bytes, however many there are."""

    @property
    def hash(self) -> str:
        """The hash of all bytes."""
        return self.digest if isinstance(self.digest, str) else self.digest()


def read_file_snapshot(folder: int, name: str, keep: int) -> FileSnapshot | None:
    """The file as it is now, its bytes kept up to a size; None when there is none."""
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), name)
        return _contents(descriptor, status, keep)
    finally:
        os.close(descriptor)


def is_unchanged(folder: int, name: str, known: FileSnapshot) -> bool:
    """Whether a name has exactly the file and the bytes that we know."""
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), known.status) and has_same_bytes(descriptor, known)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def hash_link(folder: int, name: str) -> str | None:
    """The hash of a link's target; None when it is no link."""
    try:
        return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()
    except OSError:
        return None


def has_same_bytes(descriptor: int, known: FileSnapshot) -> bool:
    """Whether an open file has the bytes that we know: compared where they are at hand, as that is quicker."""
    if known.data is None:
        return _contents(descriptor, known.status, 0).hash == known.hash
    at = 0
    while chunk := os.read(descriptor, _COMPARED_CHUNK_BYTES):
        if not known.data.startswith(chunk, at):
            return False
        at += len(chunk)
    return at == len(known.data)


def _contents(descriptor: int, status: os.stat_result, keep: int) -> FileSnapshot:
    if status.st_size <= keep:
        # In one piece, as the file most likely is: one byte more than its size shows that it did not grow.
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size and not os.read(descriptor, 1):
            return FileSnapshot(status, start_hash(data), data, data[:SAMPLE_BYTES])
        os.lseek(descriptor, 0, os.SEEK_SET)
    digest, kept, size, start = hashlib.sha256(), bytearray(), 0, b""
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        digest.update(chunk)
        start = start or chunk[:SAMPLE_BYTES]
        size += len(chunk)
        if size <= keep:
            kept += chunk
    return FileSnapshot(status, digest.hexdigest(), bytes(kept) if size <= keep else None, start)


def build_conflict_error(path: str) -> ToolError:
    """The refusal when somebody else was faster."""
    return ToolError(
        "CONFLICT",
        f"{clip_path(path)} changed while it was being written. Nothing was written. Read it, then call again.",
    )
