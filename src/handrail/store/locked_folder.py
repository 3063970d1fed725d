"""Folders that are somebody's as long as their process lives: the kernel lets go of the lock of who is killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator


def locked(folder: str) -> int:
    """A descriptor that holds the folder's lock; -1 where another one does, or the folder is gone."""
    descriptor = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(folder), os.fstat(descriptor)):
            return descriptor
    if descriptor >= 0:
        os.close(descriptor)
    return -1


@contextlib.contextmanager
def temporary_folder(prefix: str, around: str | None = None) -> Generator[str]:
    """A folder for the time of the `with`, its real path. What killed processes left of this prefix is removed."""
    around = around or tempfile.gettempdir()
    for name in os.listdir(around):
        if name.startswith(prefix) and (left := locked(os.path.join(around, name))) >= 0:
            shutil.rmtree(os.path.join(around, name), ignore_errors=True)
            os.close(left)
    descriptor, folder = -1, ""
    while descriptor < 0:  # somebody may take it for left before it is locked
        folder = tempfile.mkdtemp(prefix=prefix, dir=around)
        descriptor = locked(folder)
    try:
        yield os.path.realpath(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)
