"""System calls on files that Python's os module lacks."""

import contextlib
import ctypes
import errno
import fcntl
import os

from handrail.kernel.libc import LIBC, check

_NOREPLACE, _EXCHANGE = 0x1, 0x2
_EMPTY_PATH = 0x1000
_MAX_HANDLE_BYTES = 128
_FIRST_FREE_DESCRIPTOR = 3

# None if the C library is older than the call (glibc 2.28), or is not that of Linux.
_renameat2 = getattr(LIBC, "renameat2", None)
_name_to_handle_at = getattr(LIBC, "name_to_handle_at", None)
_syncfs = getattr(LIBC, "syncfs", None)


def exchange(folder: int, one: str, other: str) -> None:
    """Swap two names of one folder. OSError: the file system cannot."""
    _rename(folder, one, folder, other, _EXCHANGE)


def rename_new(folder: int, source: str, target: str, *, into: int | None = None) -> None:
    """Rename, also into another folder. EEXIST: the target exists."""
    _rename(folder, source, folder if into is None else into, target, _NOREPLACE)


def _rename(folder: int, source: str, into: int, target: str, flags: int) -> None:
    if _renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), target)
    check(_renameat2(folder, os.fsencode(source), into, os.fsencode(target), ctypes.c_uint(flags)), path=target)


class _FileHandle(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * _MAX_HANDLE_BYTES))


def read_file_handle(descriptor: int) -> tuple[int, bytes] | None:
    """The kind and bytes by which the file system knows a file, also after a move. None: it has no handles."""
    if _name_to_handle_at is None:
        return None
    handle, mount = _FileHandle(size=_MAX_HANDLE_BYTES), ctypes.c_int()
    flags = ctypes.c_int(_EMPTY_PATH)
    if _name_to_handle_at(descriptor, os.fsencode(""), ctypes.byref(handle), ctypes.byref(mount), flags) != 0:
        return None
    return handle.kind, bytes(handle.data[: handle.size])


def sync_file_system(folder: int) -> None:
    """Wait until the file system of a folder is on the disk. Much faster than fsync for each of many files."""
    if _syncfs is None:
        os.sync()
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            _syncfs(descriptor)
        finally:
            os.close(descriptor)


def move_above_standard(descriptor: int) -> int:
    """Move a descriptor off the numbers of the standard streams, so that a child can inherit it by its number.

    A process that closed its standard streams gets their numbers for the next files it opens. If the move fails, the
    descriptor is closed.
    """
    if descriptor >= _FIRST_FREE_DESCRIPTOR:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_DESCRIPTOR)
    finally:
        os.close(descriptor)


def open_pipe_above_standard() -> tuple[int, int]:
    """A new pipe: the end to read from, the end to write to."""
    reader, writer = os.pipe()
    try:
        reader = move_above_standard(reader)
    except OSError:
        os.close(writer)
        raise
    try:
        return reader, move_above_standard(writer)
    except OSError:
        os.close(reader)
        raise
