"""Walks a folder by descriptors: no link is followed, nothing is looked up by a name and opened afterwards.

In the order of `in_order`, one folder at a time, holding no more than a page of each folder's names.
"""

import heapq
import os
import stat
from collections.abc import Callable, Iterator

import msgspec

from handrail.workspace.ignore import IgnoreStack

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAX_PAGE_NAMES = 1 << 16
"""Names of one folder that are sorted at a time."""
_MAX_OPEN_LEVELS = 64
"""Levels whose descriptors are kept; those below are entered anew each time, so that any depth can be walked."""
_MAX_PATH_BYTES = 4095
"""Bytes of a path that the system opens."""

Skip = Callable[[bytes, bool], bool]
"""Whether a path below the searched folder is left out; True for a folder."""


class WalkedFile(msgspec.Struct, frozen=True):
    """A regular file, by the nearest folder that is open."""

    path: bytes
    """Below the searched folder."""
    near: int
    way: tuple[bytes, ...]
    """The names from there to the file's folder."""

    def open(self) -> int:
        """A descriptor of the file; OSError when it is no regular file any more."""
        name = self.path[self.path.rfind(b"/") + 1 :]
        folder = _entered(self.near, self.way) if self.way else self.near
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder)
        finally:
            if self.way:
                os.close(folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{name!r} is no regular file any more")
        return descriptor


class _Level(msgspec.Struct):
    """A folder on the way from the searched one to the current one."""

    path: bytes
    near: int
    way: tuple[bytes, ...]
    ignore: IgnoreStack
    names: Iterator[tuple[bytes, bool]]


class SearchWalk:
    """One pass over a folder; `unreadable` counts the folders that could not be entered."""

    def __init__(self, folder: int, ignore: IgnoreStack, skip: Skip) -> None:
        self._folder = folder
        self._ignore = ignore
        self._skip = skip
        self._levels: list[_Level] = []
        self.unreadable = 0

    @property
    def gap(self) -> str | None:
        """Why what is ignored is not fully known, if so."""
        return self._ignore.gap

    def files(self) -> Iterator[WalkedFile]:
        """The regular files that nothing passes over."""
        try:
            self._enter(b"", self._folder, (), self._ignore)
            while self._levels:
                yield from self._next()
        finally:
            while self._levels:
                self._leave()

    def _next(self) -> Iterator[WalkedFile]:
        level = self._levels[-1]
        try:
            entry = next(level.names, None)
        except OSError:
            self.unreadable += 1
            entry = None
        if entry is None:
            self._leave()
            return
        name, folder = entry
        path = level.path + name
        if level.ignore.matches(name, folder=folder) or self._skip(path, folder) or len(path) > _MAX_PATH_BYTES:
            return
        if folder:
            self._enter(path, level.near, (*level.way, name), level.ignore)
        else:
            yield WalkedFile(path, level.near, level.way)

    def _enter(self, path: bytes, near: int, way: tuple[bytes, ...], ignore: IgnoreStack) -> None:
        try:
            descriptor = _entered(near, way)
        except OSError:
            self.unreadable += 1
            return
        if path:
            ignore, path = ignore.inside(descriptor, way[-1]), b"%b/" % path
        if len(self._levels) < _MAX_OPEN_LEVELS:
            near, way = descriptor, ()
        else:
            os.close(descriptor)
        self._levels.append(_Level(path, near, way, ignore, _names(near, way)))

    def _leave(self) -> None:
        level = self._levels.pop()
        if not level.way:
            os.close(level.near)


def _entered(near: int, way: tuple[bytes, ...]) -> int:
    """Opens a folder below an open one name by name: a name replaced by a link is not followed."""
    descriptor = os.open(".", _FOLDER, dir_fd=near)
    for name in way:
        try:
            descriptor, outer = os.open(name, _FOLDER, dir_fd=descriptor), descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(outer)
    return descriptor


def _names(near: int, way: tuple[bytes, ...]) -> Iterator[tuple[bytes, bool]]:
    """The folders (True) and regular files of a folder, in the order of their bytes, a page at a time."""
    last = b""
    while True:
        folder = _entered(near, way)
        try:
            page = heapq.nsmallest(_MAX_PAGE_NAMES, _entries(folder, last))
        finally:
            os.close(folder)
        yield from page
        if len(page) < _MAX_PAGE_NAMES:
            return
        last = page[-1][0]


def _entries(folder: int, after: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(folder) as found:
        for entry in found:
            name = os.fsencode(entry.name)
            if name <= after:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield name, True
            elif entry.is_file(follow_symlinks=False):
                yield name, False
