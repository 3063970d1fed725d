"""Locks by name, held across processes: a file in the state folder for as long as somebody holds it."""

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Callable

from handrail.protocol.error import StoreError

Release = Callable[[], None]


class Locks:
    """A folder of lock files. The kernel frees a lock when its process ends; the file is removed by its last holder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def take(self, resource: str, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> Release | None:
        """Waits until the resource is free and holds it; None when the time is over or the wait was cancelled."""
        path = os.path.join(self._folder, hashlib.sha256(resource.encode("utf-8", "surrogateescape")).hexdigest()[:32])
        until, pause = time.monotonic() + seconds, 0.0005
        while True:
            descriptor = _try(path)
            if descriptor is not None:
                return lambda: _release(path, descriptor)
            if time.monotonic() >= until or cancelled():
                return None
            time.sleep(pause)
            pause = min(pause * 2, 0.02)


def _try(path: str) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"the lock {path} cannot be made: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    # The holder before us may have removed the file between our open and our lock: then this lock guards nothing.
    if _is_still(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _is_still(path: str, descriptor: int) -> bool:
    try:
        return os.stat(path).st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _release(path: str, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
    os.close(descriptor)
