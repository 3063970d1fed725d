"""syncfs(2): all of a file system on the disk, where flushing file by file would take many times as long."""

import contextlib
import ctypes
import os

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
