"""Locks of the processes that run a session. The kernel releases a lock when its process ends."""

import fcntl
import os
from contextlib import suppress
from typing import Self
from weakref import WeakSet

from handrail.kernel.files import is_locked
from handrail.protocol.errors import StoreError, UsageError

_NAME = ".runner"
_NEW = ".runner-new"
_LEASE_NAME = "loop.lock"


class _LockFile:
    def __init__(self) -> None:
        self._descriptor = -1

    def release(self) -> None:
        """Unlocks the file and leaves it, as a killed process would."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_held_here = WeakSet[_LockFile]()


def _release_in_child() -> None:
    """Closes a forked child's copies of the locks. Otherwise a dead parent would seem alive."""
    for lock in list(_held_here):
        lock.release()


os.register_at_fork(after_in_child=_release_in_child)


class Runner(_LockFile):
    """The locked file of one open session in one process."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.id = os.urandom(6).hex()
        self._path = os.path.join(folder, self.id + _NAME)
        unlocked = os.path.join(folder, self.id + _NEW)
        try:
            self._descriptor = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _held_here.add(self)
            # It gets its name when it is locked, or others would take it for dead.
            os.rename(unlocked, self._path)
        except OSError as error:
            self.release()
            raise StoreError(f"the session folder {folder} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Removes the file. Does nothing after `release`."""
        if self._descriptor >= 0:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            self.release()


def list_dead_runners(folder: str) -> list[str]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_NAME))
    except OSError as error:  # maybe the session was just removed
        raise StoreError(f"the session folder {folder} cannot be read: {error.strerror}") from error
    dead = [name for name in names if not is_locked(os.path.join(folder, name))]
    # A file that is gone by now was closed in an orderly way.
    return [name.removesuffix(_NAME) for name in dead if os.path.exists(os.path.join(folder, name))]


def is_in_use(folder: str) -> bool:
    return any(name.endswith(_NAME) and is_locked(os.path.join(folder, name)) for name in os.listdir(folder))


def is_dead(folder: str, runner: str) -> bool:
    return not is_locked(os.path.join(folder, runner + _NAME))


def mark_dead(folder: str, runner: str) -> None:
    """Makes the unlocked file of a runner that died on another machine."""
    os.close(os.open(os.path.join(folder, runner + _NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def remove_runner(folder: str, runner: str) -> None:
    """Removes the file of a dead runner after its recovery."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, runner + _NAME))


class Lease(_LockFile):
    """The right to run the loop of a session: `with Lease(folder, session_id):`. UsageError if it is taken."""

    def __init__(self, folder: str, session_id: str) -> None:
        super().__init__()
        self._path = os.path.join(folder, _LEASE_NAME)
        self._session_id = session_id

    def __enter__(self) -> Self:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"the lock {self._path} cannot be made: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _describe_holder(descriptor)
            os.close(descriptor)
            raise UsageError(
                f"session {self._session_id} is in use in {holder}; wait until its turn ends, or fork the session"
            ) from None
        self._descriptor = descriptor
        _held_here.add(self)
        with suppress(OSError):  # a full disk; the process id is only for messages
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def has_lease(folder: str) -> bool:
    """Whether a process runs the loop of a session."""
    return is_locked(os.path.join(folder, _LEASE_NAME))


def _describe_holder(descriptor: int) -> str:
    process = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    if process == str(os.getpid()):
        return "this process"
    return f"process {process}" if process else "another process"
