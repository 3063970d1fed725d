"""renameat2(2): swaps two names in one step."""

import ctypes
import os

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
