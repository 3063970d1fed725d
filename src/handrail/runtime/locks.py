"""Locks and cancellation of calls."""

import contextlib
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable

from handrail.protocol.errors import StoreError

# § [runtime.locks] Locks by name, held across processes: a file in the state folder for as long as somebody holds
# § it.

ROOT = "root-"
Release = Callable[[], None]
_LOOK_SECONDS = 0.02
"""How long whoever waits for a turn does not look whether it still should."""


class SessionQueue:
    """One thread at a time. Leaving is harmless for whoever has no turn, so it can be arranged before waiting for it:
    then an interrupt at any moment leaves nothing locked."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = 0

    @property
    def held_here(self) -> bool:
        """Whether this thread has its turn already."""
        return self._owner == threading.get_ident()

    def enter(self, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Waits for a turn; False where the wait was cancelled."""
        while not self._lock.acquire(timeout=_LOOK_SECONDS):
            if cancelled():
                return False
        self._owner = threading.get_ident()
        return True

    def leave(self) -> None:
        """Gives the turn to the next."""
        if self.held_here:
            self._owner = 0
        with contextlib.suppress(RuntimeError):
            self._lock.release()


class Locks:
    """A folder of lock files."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def of(self, resource: str) -> "Lock":
        """The lock of a resource; nothing is locked yet."""
        return Lock(os.path.join(self._folder, _name(resource)))

    def of_root(self, root: str, *, alone: bool) -> "Lock":
        """The lock of a whole root: held together by those who change single files in it, or alone."""
        return Lock(os.path.join(self._folder, f"{ROOT}{_name(root)}"), shared=not alone)


def _name(resource: str) -> str:
    return hashlib.sha256(resource.encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Lock:
    """A lock file. The kernel frees it when its process ends; one held alone is removed by its last holder."""

    __slots__ = ("_descriptor", "_path", "_shared")

    def __init__(self, path: str, *, shared: bool = False) -> None:
        self._path = path
        self._descriptor = -1
        self._shared = shared

    def take(self, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Waits until the resource is free and holds it; False when the time is over or the wait was cancelled."""
        until, pause = time.monotonic() + seconds, 0.0005
        while not self._try():
            if time.monotonic() >= until or cancelled():
                return False
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return True

    @property
    def may_be_held(self) -> bool:
        """Whether its file is there: somebody holds it, or was killed while it did."""
        return os.path.exists(self._path)

    def release(self) -> None:
        """Frees the resource, if it is held."""
        if self._descriptor >= 0:
            if not self._shared:
                with contextlib.suppress(OSError):
                    os.unlink(self._path)
            self._drop()

    def _try(self) -> bool:
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"the lock {self._path} cannot be made: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self._drop()
            return False
        # The holder before us may have removed the file between our open and our lock: then this lock guards nothing.
        if self._is_still_there():
            return True
        self._drop()
        return False

    def _is_still_there(self) -> bool:
        try:
            return os.stat(self._path).st_ino == os.fstat(self._descriptor).st_ino
        except FileNotFoundError:
            return False

    def _drop(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


# § [runtime.cancelling] Which calls are on their way in this process, and which of them are to end before they are
# § through.


class CancelTokens:
    """Calls by their ids. One that is to end says so until nobody is at it any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here: dict[str, int] = {}
        """How many are at each: two may call with one id, and the second waits for what the first comes to."""
        self._ending: set[str] = set()

    def reserve(self, call_id: str) -> None:
        """The call will begin: it can be ended from here on. It is `end`ed whether or not it begins."""
        self._here.setdefault(call_id, 0)

    def is_reserved(self, call_id: str) -> bool:
        """Whether an id was made here for a call that nobody has begun."""
        return self._here.get(call_id) == 0

    def begin(self, call_ids: Iterable[str]) -> None:
        """These are on their way."""
        with self._lock:
            for call_id in call_ids:
                self._here[call_id] = self._here.get(call_id, 0) + 1

    def end(self, call_ids: Iterable[str]) -> None:
        """These are through, or wait for a person."""
        with self._lock:
            for call_id in call_ids:
                left = self._here.get(call_id, 0) - 1
                if left > 0:
                    self._here[call_id] = left
                else:
                    self._here.pop(call_id, None)
                    self._ending.discard(call_id)

    def cancel(self, call_id: str) -> bool:
        """Has one end; False where it is not on its way here."""
        with self._lock:
            found = call_id in self._here
            if found:
                self._ending.add(call_id)
            return found

    def is_requested(self, call_id: str) -> bool:
        """Whether a call is to end."""
        return call_id in self._ending
