"""openat2(2): opens a path that cannot lead out of a folder, whatever anybody renames meanwhile."""

import ctypes
import errno
import os
import sys
from functools import lru_cache

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

# The number is the same on every architecture that got its system calls from the common table (all since 2019).
_NUMBER = 437
_MACHINES = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "loongarch64"})
_MAX_ATTEMPTS = 64
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SIZE = ctypes.sizeof(_How)
_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_How), ctypes.c_size_t)


@lru_cache(maxsize=64)
def _how(flags: int, mode: int, resolve: int) -> _How:
    """The kernel only reads it, so one serves all calls."""
    return _How(
        flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, resolve | RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
    )


def openat2(folder: int, path: str, flags: int, mode: int = 0, resolve: int = 0) -> int:
    """A descriptor for `path` beneath `folder`; OSError EXDEV when it leads out."""
    how = _how(flags, mode, resolve)
    name = path.encode(_ENCODING, _ERRORS)  # what os.fsencode does, without asking what it was given
    problem = errno.EAGAIN
    for _ in range(_MAX_ATTEMPTS):
        descriptor = _syscall(_NUMBER, folder, name, how, _SIZE)
        if descriptor >= 0:
            return descriptor
        problem = ctypes.get_errno()
        # EAGAIN: a rename raced with "..", and the kernel could not prove that the path stays beneath.
        if problem not in {errno.EAGAIN, errno.EINTR}:
            break
    raise OSError(problem, os.strerror(problem), path)


def has_openat2() -> bool:
    """Whether this kernel has openat2 and lets us use it."""
    if sys.platform != "linux" or os.uname().machine not in _MACHINES:
        return False
    folder = os.open("/", os.O_PATH | os.O_DIRECTORY)
    try:
        os.close(openat2(folder, ".", os.O_PATH | os.O_DIRECTORY))
    except OSError:
        return False
    finally:
        os.close(folder)
    return True
