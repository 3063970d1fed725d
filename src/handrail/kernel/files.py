"""System calls on files: exchange of names, handles, synchronisation, descriptors."""

import contextlib
import ctypes
import fcntl
import os

# § [kernel.rename] renameat2(2): swaps two names in one step.

_EXCHANGE = 0x2
_NOREPLACE = 0x1

try:
    _renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
except AttributeError:  # not glibc 2.28+, or not Linux
    _renameat2 = None


def exchange(folder: int, one: str, other: str) -> None:
    """Swaps two names of one folder; OSError where the file system cannot."""
    _rename(folder, one, other, _EXCHANGE)


def rename_new(folder: int, source: str, target: str, *, into: int | None = None) -> None:
    """Renames, also into another folder, and fails with EEXIST where the target exists."""
    _rename(folder, source, target, _NOREPLACE, into)


def _rename(folder: int, source: str, target: str, flags: int, into: int | None = None) -> None:
    if _renameat2 is None:
        raise OSError(38, os.strerror(38), target)
    end = folder if into is None else into
    if _renameat2(folder, os.fsencode(source), end, os.fsencode(target), ctypes.c_uint(flags)) != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem), target)


# § [kernel.handles] name_to_handle_at(2): what the file system itself tells a file apart by, also after it was
# § moved.

_EMPTY_PATH = 0x1000
_MAX_HANDLE_BYTES = 128


class _Handle(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * _MAX_HANDLE_BYTES))


try:
    _name_to_handle_at = ctypes.CDLL(None, use_errno=True).name_to_handle_at
except AttributeError:  # not Linux
    _name_to_handle_at = None


def read_file_handle(descriptor: int) -> tuple[int, bytes] | None:
    """The handle of an open file, as its kind and its bytes; None where the file system has none."""
    if _name_to_handle_at is None:
        return None
    handle, mount = _Handle(size=_MAX_HANDLE_BYTES), ctypes.c_int()
    flags = ctypes.c_int(_EMPTY_PATH)
    if _name_to_handle_at(descriptor, os.fsencode(""), ctypes.byref(handle), ctypes.byref(mount), flags) != 0:
        return None
    return handle.kind, bytes(handle.data[: handle.size])


# § [kernel.syncfs] syncfs(2): all of a file system on the disk, where flushing file by file would take many times
# § as long.

try:
    _syncfs = ctypes.CDLL(None, use_errno=True).syncfs
except AttributeError:  # not Linux
    _syncfs = None


def sync_file_system(folder: int) -> None:
    """Waits until everything on the file system of a folder is on the disk."""
    if _syncfs is None:
        os.sync()
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            _syncfs(descriptor)
        finally:
            os.close(descriptor)


# § [kernel.descriptors] Descriptors that a program can be handed under their own numbers.  A host that closed its
# § standard streams gets those numbers for whatever it opens next; what it starts has its own streams there.

_FIRST = 3


def move_above_standard(descriptor: int) -> int:
    """The descriptor, moved where its number is a standard stream's; closed where there is no room to move it to."""
    if descriptor >= _FIRST:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST)
    finally:
        os.close(descriptor)


def open_pipe_above_standard() -> tuple[int, int]:
    """A new pipe: the end to read from, the end to write to."""
    reading, writing = os.pipe()
    moved: list[int] = []
    try:
        moved.append(move_above_standard(reading))
        moved.append(move_above_standard(writing))
    except OSError:
        os.close(moved[0] if moved else writing)
        raise
    return moved[0], moved[1]
