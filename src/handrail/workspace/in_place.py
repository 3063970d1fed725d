"""Writes a file with several hard links in place, so that all its names have the new bytes."""

import errno
import os
import stat
from collections.abc import Callable, Iterable

import msgspec

from handrail.edit.lines import count_common_start
from handrail.kernel.files import write_all
from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.store.blobs import Blobs
from handrail.workspace.errors import build_conflict_error
from handrail.workspace.file_state import Content, FileSnapshot
from handrail.workspace.resolve import ResolvedParent, closing_descriptor
from handrail.workspace.roots import clip_path

_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 16
_PIECE_BYTES = 1 << 20
_MAX_HELD_BYTES = 8 * 1024 * 1024
"""Bytes of new content that are held in memory during the write."""
UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
"""Errors of a system call that the file system lacks."""


class WriteResult(msgspec.Struct, frozen=True):
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
    """Overwrites a file in place, and restores it if that fails.

    `kept`: reads the old bytes again, if they are too many to be held.
    """
    old = _find_old_bytes(before, kept, path)
    with closing_descriptor(os.open(name, _WRITE, dir_fd=folder)) as descriptor:
        # The open file is compared, not the name: it cannot be replaced.
        status = os.fstat(descriptor)
        if not os.path.samestat(status, before.status) or not before.has_same_bytes(descriptor):
            raise build_conflict_error(path)
        pieces = _check_pieces(new)  # before the first byte is overwritten: kept content may be damaged
        try:
            _reserve_space(descriptor, new.size, before.status.st_size)
            _overwrite(descriptor, pieces, new.size)
            if mode is not None:
                _change_mode(descriptor, mode)  # last: a write may clear mode bits
        except BaseException:
            _overwrite(descriptor, old(), before.status.st_size)
            raise
    return WriteResult(new.hash, new.size, stat.S_IMODE(before.status.st_mode) if mode is None else mode, in_place=True)


def repair_torn_file(parent: ResolvedParent, before: State | None, after: State | None, blobs: Blobs) -> None:
    """Restores a file that a killed `write_through` left with new bytes at its start and old bytes behind them.

    Any other content is a change by another program, and stays.
    """
    if before is None or after is None or {before.kind, after.kind} != {"file"}:
        return
    status = os.stat(parent.name, dir_fd=parent.folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
        return
    if not (blobs.has(before.hash) and blobs.has(after.hash)):
        return  # no write in place was planned
    with closing_descriptor(os.open(parent.name, _WRITE, dir_fd=parent.folder)) as now:
        if not os.path.samestat(os.fstat(now), status):
            return
        with closing_descriptor(blobs.open(before.hash)) as old, closing_descriptor(blobs.open(after.hash)) as new:
            written = _count_written(now, old, new)
            if written is not None:
                _restore(now, old, before.size, written)


def _find_old_bytes(
    before: FileSnapshot, kept: Callable[[], Iterable[bytes]] | None, path: str
) -> Callable[[], Iterable[bytes]]:
    data = before.data
    if data is not None:
        return lambda: (data,)
    if kept is None:
        message = f"{clip_path(path)} has several hard links and is too large to be written safely."
        raise ToolError("LIMIT_EXCEEDED", message)
    return kept


def _check_pieces(new: Content) -> Iterable[bytes]:
    """Reads all pieces once. Few bytes are held. More are read again for the write."""
    if new.size <= _MAX_HELD_BYTES:
        return [b"".join(new.pieces())]
    for _ in new.pieces():
        pass
    return new.pieces()


def _reserve_space(descriptor: int, size: int, before: int) -> None:
    """Fails on a full disk before the first byte is overwritten, if the file system can tell."""
    if size > before and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise


def _overwrite(descriptor: int, pieces: Iterable[bytes], size: int) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    for piece in pieces:
        write_all(descriptor, memoryview(piece))
    os.ftruncate(descriptor, size)
    os.fsync(descriptor)


def _change_mode(descriptor: int, mode: int) -> None:
    os.fchmod(descriptor, mode)
    os.fsync(descriptor)


def _restore(descriptor: int, old: int, size: int, written: int) -> None:
    """Writes old bytes from the end to the start. Killed anywhere, it leaves new bytes with old ones behind them."""
    os.ftruncate(descriptor, size)
    for end in range(min(written, size), 0, -_BLOCK_BYTES):
        start = max(0, end - _BLOCK_BYTES)
        os.pwrite(descriptor, os.pread(old, end - start, start), start)
    os.fsync(descriptor)


def _count_written(now: int, old: int, new: int) -> int | None:
    """The number of new bytes in front of old ones. None if the file is old, new or something else."""
    size, before, after = (os.fstat(descriptor).st_size for descriptor in (now, old, new))
    if not min(before, after) <= size <= max(before, after):
        return None
    written = _find_difference(now, new, 0, size)
    if written == size == after or _find_difference(now, old, 0, size) == size == before:
        return None
    return written if _find_difference(now, old, written, size, padded=True) == size else None


def _find_difference(one: int, other: int, start: int, end: int, *, padded: bool = False) -> int:
    """The first difference of two files after `start`, or `end`. `padded`: the other file continues with zeros."""
    at = start
    while at < end:
        length = min(_PIECE_BYTES, end - at)
        piece, like = os.pread(one, length, at), os.pread(other, length, at)
        if padded:
            like = like.ljust(len(piece), b"\0")
        same = count_common_start(piece, like)
        at += same
        if same < length:
            break
    return at
