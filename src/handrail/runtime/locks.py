"""Locks that make calls wait for each other."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable

from handrail.protocol.digest import short_sha256
from handrail.protocol.errors import StoreError

ROOT = "root-"
Release = Callable[[], None]
_POLL_SECONDS = 0.02
"""How often a thread that waits in the queue checks whether it was cancelled."""
_local = threading.local()


def get_call_thread() -> int:
    """The thread that made the call which this thread works for. Its own, if it works for none."""
    find_caller: Callable[[], int] | None = getattr(_local, "find_caller", None)
    return (find_caller() if find_caller is not None else 0) or threading.get_ident()


def work_for(find_caller: Callable[[], int]) -> None:
    """Makes this thread work for the call of another one, until `find_caller` returns 0."""
    _local.find_caller = find_caller


class SessionQueue:
    """Lets one thread at a time run a call with effects.

    `leave` does nothing for a thread that is not inside. So it can be registered before `enter`, and an interrupt at
    any moment leaves nothing locked.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = 0

    @property
    def held_here(self) -> bool:
        return self._owner == get_call_thread()

    def enter(self, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Waits until no other thread is inside. False if the wait was cancelled."""
        while not self._lock.acquire(timeout=_POLL_SECONDS):
            if cancelled():
                return False
        self._owner = get_call_thread()
        return True

    def leave(self) -> None:
        if self.held_here:
            self._owner = 0
        with contextlib.suppress(RuntimeError):
            self._lock.release()


class Locks:
    """A folder of lock files, which all processes of a state folder share."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def of(self, resource: str) -> "Lock":
        """The lock of a resource. It is not taken yet."""
        return Lock(os.path.join(self._folder, _hash_name(resource)))

    def of_root(self, root: str, *, alone: bool) -> "Lock":
        """The lock of a whole root. Calls that change single files share it."""
        return Lock(os.path.join(self._folder, f"{ROOT}{_hash_name(root)}"), shared=not alone)


def _hash_name(resource: str) -> str:
    return short_sha256(resource.encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Lock:
    """A lock file. The kernel unlocks it when its process ends. An exclusive one is removed by its last holder."""

    __slots__ = ("_descriptor", "_path", "_shared")

    def __init__(self, path: str, *, shared: bool = False) -> None:
        self._path = path
        self._descriptor = -1
        self._shared = shared

    def take(self, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Waits for the lock. False if the time is over or the wait was cancelled."""
        until, pause = time.monotonic() + seconds, 0.0005
        while not self._try():
            if time.monotonic() >= until or cancelled():
                return False
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return True

    @property
    def may_be_held(self) -> bool:
        """Whether its file exists: a process holds it, or was killed while it did."""
        return os.path.exists(self._path)

    def release(self) -> None:
        if self._descriptor >= 0:
            if not self._shared:
                with contextlib.suppress(OSError):
                    os.unlink(self._path)
            self._close()

    def _try(self) -> bool:
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"the lock {self._path} cannot be made: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            return False
        # If the last holder removed the file between our open and our flock, this lock protects nothing.
        if self._is_current():
            return True
        self._close()
        return False

    def _is_current(self) -> bool:
        try:
            return os.stat(self._path).st_ino == os.fstat(self._descriptor).st_ino
        except FileNotFoundError:
            return False

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
