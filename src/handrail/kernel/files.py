"""System calls on files that Python's os module lacks."""

import contextlib
import ctypes
import errno
import fcntl
import os
import sys
import time
from functools import cache
from typing import Any, Self

from handrail.kernel.libc import COMMON_TABLE_MACHINES, LIBC, check

_RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_OPENAT2 = ctypes.c_long(437)  # the number of the call
_MAX_ATTEMPTS = 64
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
_NOREPLACE, _EXCHANGE = 0x1, 0x2
_EMPTY_PATH = 0x1000
_MAX_HANDLE_BYTES = 128
_FIRST_FREE_DESCRIPTOR = 3
_LOCK_PAUSE_SECONDS = 0.005

# None if the C library is older than the call (glibc 2.28), or is not that of Linux.
_renameat2 = getattr(LIBC, "renameat2", None)
_name_to_handle_at = getattr(LIBC, "name_to_handle_at", None)
_syncfs = getattr(LIBC, "syncfs", None)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


# Arguments that have their C types already need no `argtypes`, whose conversion takes as long as the system call.
_OPEN_HOW_BYTES = ctypes.c_size_t(ctypes.sizeof(_OpenHow))
_syscall = LIBC["syscall"]
_syscall.restype = ctypes.c_long


def openat2(folder: int, path: str, flags: int, mode: int = 0, resolve: int = 0) -> int:
    """A descriptor for `path` below `folder`. EXDEV: the path leads out."""
    how = _build_open_how(flags, mode, resolve)
    name = path.encode(_ENCODING, _ERRORS)  # os.fsencode without its type checks
    descriptor = -1
    for _ in range(_MAX_ATTEMPTS):
        descriptor = _syscall(_OPENAT2, folder, name, how, _OPEN_HOW_BYTES)
        if descriptor >= 0:
            return descriptor
        # EAGAIN: a rename raced with "..", and the kernel could not prove that the path stays below.
        if ctypes.get_errno() not in {errno.EAGAIN, errno.EINTR}:
            break
    return check(descriptor, path=path)


def has_openat2() -> bool:
    if sys.platform != "linux" or os.uname().machine not in COMMON_TABLE_MACHINES:
        return False
    folder = os.open("/", os.O_PATH | os.O_DIRECTORY)
    try:
        os.close(openat2(folder, ".", os.O_PATH | os.O_DIRECTORY))
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


@cache
def _build_open_how(flags: int, mode: int, resolve: int) -> Any:
    """A reference to the struct, which it keeps alive. The kernel only reads the struct, so calls share it."""
    how = _OpenHow(
        flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, resolve | _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS
    )
    return ctypes.byref(how)


def exchange(folder: int, one: str, other: str) -> None:
    """Swap two names of one folder. OSError: the file system cannot."""
    _rename(folder, one, folder, other, _EXCHANGE)


def rename_new(folder: int, source: str, target: str, *, into: int | None = None) -> None:
    """Rename, also into another folder. EEXIST: the target exists."""
    _rename(folder, source, folder if into is None else into, target, _NOREPLACE)


def _rename(folder: int, source: str, into: int, target: str, flags: int) -> None:
    if _renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), target)
    result = _renameat2(folder, os.fsencode(source), into, os.fsencode(target), ctypes.c_uint(flags))
    check(result, path=target)


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


class DescriptorSet:
    """Descriptors above those of the standard streams. Leaving the `with` closes them, unless they were handed on."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def add(self, descriptor: int) -> int:
        """Take over a descriptor. Its number may change."""
        self._open.append(move_above_standard(descriptor))
        return self._open[-1]

    def open_pipe(self) -> tuple[int, int]:
        ends = open_pipe_above_standard()
        self._open += ends
        return ends

    def open_memory_file(self, content: bytes = b"") -> int:
        """A file in memory, to be read from its beginning."""
        descriptor = self.add(os.memfd_create("handrail"))
        write_memory_file(descriptor, content)
        return descriptor

    def hand_on(self) -> None:
        """Leave the descriptors to another owner."""
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open:
            os.close(descriptor)


def write_memory_file(descriptor: int, content: bytes) -> None:
    """Write a file and go back to its beginning."""
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)


def write_all(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]


# Locks of folders. The kernel releases them when the process ends.


def lock_folder(folder: str) -> int:
    """A descriptor that holds the folder's lock. -1 if another process holds it, or the folder is gone."""
    descriptor = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(folder), os.fstat(descriptor)):
            return descriptor
    if descriptor >= 0:
        os.close(descriptor)
    return -1


def wait_for_lock(descriptor: int, seconds: float) -> bool:
    """Take the lock of an open file. False if another process held it all the time."""
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOCK_PAUSE_SECONDS)
        else:
            return True


def is_locked(path: str) -> bool:
    """Whether a live process holds the lock of a file or folder. Several processes may ask at once."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
