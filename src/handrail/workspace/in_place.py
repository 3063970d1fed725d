"""Files with several names are written in place, so that all of them see it."""

import errno
import os
import stat
from collections.abc import Callable, Iterable

import msgspec

from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import Content, FileSnapshot, build_conflict_error, has_same_bytes

_BLOCK_BYTES = 1 << 16
_MAX_HELD_BYTES = 8 * 1024 * 1024
"""Bytes of new content that are held in memory while they are written."""
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


class WriteResult(msgspec.Struct, frozen=True):
    """How the new bytes got there."""

    hash: str
    size: int
    mode: int
    in_place: bool = False


def write_through(
    folder: int,
    name: str,
    new: Content,
    before: FileSnapshot,
    path: str,
    mode: int | None = None,
    kept: Callable[[], Iterable[bytes]] | None = None,
) -> WriteResult:
    """A file with several names is written in place, so that all of them see it; restored if that fails.

    `kept`: where the old bytes are to be had again, if they are too many to be held.
    """
    old = _again(before, kept, path)
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        # What is looked at is the file that is open, not the name: nobody can put another one under it.
        status = os.fstat(descriptor)
        if not os.path.samestat(status, before.status) or not has_same_bytes(descriptor, before):
            raise build_conflict_error(path)
        pieces = _whole(new)  # all of it, before the first byte is overwritten: kept content may be damaged
        try:
            _reserve(descriptor, new.size, before.status.st_size)
            _overwrite(descriptor, pieces, new.size)
            if mode is not None:
                _change_mode(descriptor, mode)  # last: writing may clear bits of it
        except BaseException:
            _overwrite(descriptor, old(), before.status.st_size)
            raise
    finally:
        os.close(descriptor)
    return WriteResult(new.hash, new.size, stat.S_IMODE(before.status.st_mode) if mode is None else mode, in_place=True)


def _again(
    before: FileSnapshot, kept: Callable[[], Iterable[bytes]] | None, path: str
) -> Callable[[], Iterable[bytes]]:
    data = before.data
    if data is not None:
        return lambda: (data,)
    if kept is None:
        message = f"{clip_path(path)} has several hard links and is too large to be written safely."
        raise ToolError("LIMIT_EXCEEDED", message)
    return kept


def _whole(new: Content) -> Iterable[bytes]:
    """The pieces, once they have been seen to be what they should: held where they are few, else read again."""
    if new.size <= _MAX_HELD_BYTES:
        return [b"".join(new.pieces())]
    for _ in new.pieces():
        pass
    return new.pieces()


def put_back(descriptor: int, old: int, size: int, written: int) -> None:
    """Takes back what was written over the beginning of a file, from its end on: cut off anywhere, it still is new
    bytes with old ones behind them. `old`: a descriptor that has the old bytes."""
    os.ftruncate(descriptor, size)
    for end in range(min(written, size), 0, -_BLOCK_BYTES):
        start = max(0, end - _BLOCK_BYTES)
        os.pwrite(descriptor, os.pread(old, end - start, start), start)
    os.fsync(descriptor)


def _reserve(descriptor: int, size: int, before: int) -> None:
    """Finds out that the disk is full before the first byte is overwritten, where the file system can tell."""
    if size > before and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise


def _change_mode(descriptor: int, mode: int) -> None:
    os.fchmod(descriptor, mode)
    os.fsync(descriptor)


def _overwrite(descriptor: int, pieces: Iterable[bytes], size: int) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    for piece in pieces:
        view = memoryview(piece)
        while view:
            view = view[os.write(descriptor, view) :]
    os.ftruncate(descriptor, size)
    os.fsync(descriptor)
