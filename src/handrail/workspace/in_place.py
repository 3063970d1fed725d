"""Files with several names are written in place, so that all of them see it."""

import errno
import os
import stat
from collections.abc import Iterable

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.content import Content, fill
from handrail.workspace.current import Current, changed, holds
from handrail.workspace.errors import clipped

_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


class Written(msgspec.Struct, frozen=True):
    """How the new bytes got there."""

    hash: str
    size: int
    mode: int
    in_place: bool = False


def write_through(folder: int, name: str, new: Content, before: Current, path: str) -> Written:
    """A file with several names is written in place, so that all of them see it; restored if that fails."""
    if before.data is None:
        raise ToolError(
            "LIMIT_EXCEEDED", f"{clipped(path)} has several hard links and is too large to be written safely."
        )
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        # What is looked at is the file that is open, not the name: nobody can put another one under it.
        status = os.fstat(descriptor)
        if not os.path.samestat(status, before.status) or not holds(descriptor, before):
            raise changed(path)
        try:
            _reserve(descriptor, new.size, len(before.data))
            _overwrite(descriptor, new.pieces(), new.size)
        except OSError:
            _overwrite(descriptor, (before.data,), len(before.data))
            raise
    finally:
        os.close(descriptor)
    return Written(new.hash, new.size, stat.S_IMODE(before.status.st_mode), in_place=True)


def write_in_place(folder: int, name: str, data: bytes) -> None:
    """Writes through all names of a file; for who knows that what is there is to go."""
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        _overwrite(descriptor, (data,), len(data))
    finally:
        os.close(descriptor)


def _reserve(descriptor: int, size: int, before: int) -> None:
    """Finds out that the disk is full before the first byte is overwritten, where the file system can tell."""
    if size > before and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise


def _overwrite(descriptor: int, pieces: Iterable[bytes], size: int) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    fill(descriptor, pieces)
    os.ftruncate(descriptor, size)
    os.fsync(descriptor)
