"""Files with several names are written in place, so that all of them see it."""

import errno
import os
import stat

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.content import Content, fill
from handrail.workspace.current import Current, changed, holds
from handrail.workspace.errors import clipped

_BLOCK = 1 << 16
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


class Written(msgspec.Struct, frozen=True):
    """How the new bytes got there."""

    hash: str
    size: int
    mode: int
    in_place: bool = False


def write_through(folder: int, name: str, new: Content, before: Current, path: str, mode: int | None = None) -> Written:
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
        data = b"".join(new.pieces())  # all of it, before the first byte is overwritten: kept content may be damaged
        try:
            _reserve(descriptor, len(data), len(before.data))
            _overwrite(descriptor, data)
            if mode is not None:
                _change_mode(descriptor, mode)  # last: writing may clear bits of it
        except BaseException:
            _overwrite(descriptor, before.data)
            raise
    finally:
        os.close(descriptor)
    return Written(new.hash, new.size, stat.S_IMODE(before.status.st_mode) if mode is None else mode, in_place=True)


def put_back(descriptor: int, old: bytes, written: int) -> None:
    """Takes back what was written over the beginning of a file, from its end on: cut off anywhere, it still is new
    bytes with old ones behind them."""
    os.ftruncate(descriptor, len(old))
    for end in range(min(written, len(old)), 0, -_BLOCK):
        start = max(0, end - _BLOCK)
        os.pwrite(descriptor, old[start:end], start)
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


def _overwrite(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    fill(descriptor, (data,))
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)
