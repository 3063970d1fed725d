"""Where layers are kept: in the state folder, or in memory where its file system cannot take in what is changed."""

import os
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_LEAST = 32 << 20
"""Bytes of memory that a place must have to spare."""


class Place(NamedTuple):
    """A folder for layers."""

    folder: str
    in_memory: bool = False

    @property
    def most(self) -> int | None:
        """How many bytes fit in there yet, where that is not for the disk to say."""
        if not self.in_memory:
            return None
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize


def places_in_memory(environ: Mapping[str, str]) -> Iterator[Place]:
    """Folders in memory that layers may be kept in, the best first; made where they are not there."""
    for memory in (environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"):  # noqa: S108  our folder in it is for us alone
        place = Place(os.path.join(memory, f"handrail-layers-{os.geteuid()}"), in_memory=True)
        if os.path.isabs(memory) and _is_ours(place.folder) and (place.most or 0) >= _LEAST:
            yield place


def _is_ours(folder: str) -> bool:
    try:
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
