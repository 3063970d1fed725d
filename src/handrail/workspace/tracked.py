"""Which files git tracks, read from its index: git itself, asked here, would run what a repository configures."""

import os
from collections.abc import Iterable
from functools import lru_cache

_LARGEST = 256 << 20
_LENGTH = 0x0FFF
"""The bits of an entry's flags that hold the length of its name."""


def tracked(paths: Iterable[str], roots: Iterable[str]) -> frozenset[str]:
    """Those of the files, by absolute paths in the roots, that the repository around them tracks."""
    within = tuple(roots)
    return frozenset(path for path in paths if _is_tracked(path, within))


def _is_tracked(path: str, roots: tuple[str, ...]) -> bool:
    folder = path
    while folder not in roots and folder != "/":
        folder = os.path.dirname(folder)
        index = os.path.join(folder, ".git", "index")
        if (found := _state(index)) is not None:
            return _holds(_content(index, found), os.fsencode(os.path.relpath(path, folder)))
    return False


def _holds(index: bytes, name: bytes) -> bool:
    """Whether an entry has this name: its length stands before it, a NUL behind. Indexes of version 4 shorten names, so
    that only some are found in those."""
    length = min(len(name), _LENGTH)
    place = index.find(name + b"\0")
    while place >= 0:
        if int.from_bytes(index[place - 2 : place], "big") & _LENGTH == length:
            return True
        place = index.find(name + b"\0", place + 1)
    return False


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns, status.st_size


@lru_cache(maxsize=4)
def _content(path: str, _state: tuple[int, int, int]) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return b""
