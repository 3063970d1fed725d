"""Where overlays are stored: in the state folder, or in memory where its file system cannot take in what is changed."""

import os
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_MIN_MEMORY_BYTES = 32 << 20
"""Bytes of memory that a place must have to spare."""


class OverlayFolder(NamedTuple):
    """A folder for overlays."""

    folder: str
    in_memory: bool = False

    @property
    def max_bytes(self) -> int | None:
        """How many bytes fit in there yet, where that is not for the disk to say."""
        if not self.in_memory:
            return None
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize


def list_memory_folders(environ: Mapping[str, str]) -> Iterator[OverlayFolder]:
    """Folders in memory that overlays may be stored in, the best first; made where they are not there."""
    for memory in (environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"):  # noqa: S108  our folder in it is for us alone
        place = OverlayFolder(os.path.join(memory, f"handrail-layers-{os.geteuid()}"), in_memory=True)
        if os.path.isabs(memory) and _is_ours(place.folder) and (place.max_bytes or 0) >= _MIN_MEMORY_BYTES:
            yield place


def _is_ours(folder: str) -> bool:
    try:
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
