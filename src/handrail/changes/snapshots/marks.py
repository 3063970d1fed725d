"""What the system tells of a file without opening it, and when that is enough to know that it is the same."""

import os
import stat
from typing import Literal

import msgspec

from handrail.protocol.changes import Kind

SETTLED_NANOSECONDS = 2_000_000_000
"""Nanoseconds after a change in which a second one may bear the same time, on the coarsest of clocks."""
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}


class PathStat(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One path at a moment. The change time is the system's own: nobody else sets it."""

    kind: Kind | Literal["other"]
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int


class SnapshotEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A path with what it held."""

    mark: PathStat
    hash: bytes = b""
    """SHA-256 of a file's bytes, or of where a link leads; a folder has none."""
    object: bytes = b""
    """The name that git keeps them under."""


def to_path_stat(status: os.stat_result) -> PathStat:
    """What a path is now."""
    kind: Kind | Literal["other"] = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
    mode, size = stat.S_IMODE(status.st_mode), 0 if kind == "folder" else status.st_size
    return PathStat(kind, mode, size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_unchanged(then: PathStat, now: PathStat, taken: int) -> bool:
    """Whether a path is for certain what it was when it was read, at the time `taken`."""
    if then.kind == now.kind == "folder":
        return then.mode == now.mode
    return then == now and then.ctime < taken - SETTLED_NANOSECONDS
