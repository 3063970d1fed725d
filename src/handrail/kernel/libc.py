"""The C library: the one handle through which system calls are made."""

import ctypes
import errno
import os

LIBC = ctypes.CDLL(None, use_errno=True)

COMMON_TABLE_MACHINES = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "loongarch64"})
"""Architectures that take their system call numbers from the common table (every call since 2019)."""


def check(result: int, name: str = "", path: str | None = None) -> int:
    """The result of a call. If it is negative, raise the OSError that errno names."""
    if result >= 0:
        return result
    number = ctypes.get_errno() or errno.EIO
    reason = f"{name}: {os.strerror(number)}" if name else os.strerror(number)
    raise OSError(number, reason) if path is None else OSError(number, reason, path)
