"""openat2(2): opens a path that cannot lead out of a folder, even if names on it change meanwhile."""

import ctypes
import errno
import os
import sys
from functools import lru_cache

from handrail.kernel.libc import COMMON_TABLE_MACHINES, LIBC, check

_RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08

_NUMBER = 437
_MAX_ATTEMPTS = 64
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SIZE = ctypes.sizeof(_OpenHow)
_syscall = LIBC["syscall"]
_syscall.restype = ctypes.c_long
_syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_OpenHow), ctypes.c_size_t)


def openat2(folder: int, path: str, flags: int, mode: int = 0, resolve: int = 0) -> int:
    """A descriptor for `path` below `folder`. EXDEV: the path leads out."""
    how = _build_open_how(flags, mode, resolve)
    name = path.encode(_ENCODING, _ERRORS)  # os.fsencode without its type checks
    descriptor = -1
    for _ in range(_MAX_ATTEMPTS):
        descriptor = _syscall(_NUMBER, folder, name, how, _SIZE)
        # EAGAIN: a rename raced with "..", and the kernel could not prove that the path stays below.
        if descriptor >= 0 or ctypes.get_errno() not in {errno.EAGAIN, errno.EINTR}:
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


@lru_cache(maxsize=64)
def _build_open_how(flags: int, mode: int, resolve: int) -> _OpenHow:
    """The kernel only reads the struct, so calls share it."""
    return _OpenHow(
        flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, resolve | _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS
    )
