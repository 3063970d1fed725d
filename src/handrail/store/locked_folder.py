"""Folders that are somebody's as long as their process lives: the kernel lets go of the lock of who is killed."""

import contextlib
import fcntl
import os


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
