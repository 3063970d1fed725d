"""Liveness of the processes that run a session."""

import contextlib
import fcntl
import os
from contextlib import suppress
from typing import Self
from weakref import WeakSet

from handrail.protocol.errors import StoreError, UsageError
from handrail.store.state_dir import is_locked

# § [store.runner] Who is at work on a session: a locked file that the kernel frees when its process ends, however
# § it ends.

_NAME = ".runner"
_NEW = ".runner-new"
_open_here: "WeakSet[Runner]" = WeakSet()


def _leave_to_parent() -> None:
    """A forked child holds copies of the locks; it lets go of them, or its parent would seem alive after its death."""
    for runner in list(_open_here):
        runner.abandon()


os.register_at_fork(after_in_child=_leave_to_parent)


class Runner:
    """The mark of one open session in one process."""

    def __init__(self, folder: str) -> None:
        self.id = os.urandom(6).hex()
        self._path = os.path.join(folder, self.id + _NAME)
        self._descriptor = -1
        unlocked = os.path.join(folder, self.id + _NEW)
        try:
            self._descriptor = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _open_here.add(self)
            # It gets its name when it is locked: whoever looks before that would take it for dead.
            os.rename(unlocked, self._path)
        except OSError as error:
            self.abandon()
            raise StoreError(f"the session folder {folder} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Ends the mark in an orderly way."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self.abandon()

    def abandon(self) -> None:
        """Leaves the mark as a killed process would: the next to open the session settles what is undone."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def list_dead_runners(folder: str) -> list[str]:
    """The runners whose process ended without saying so."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_NAME))
    except OSError as error:  # maybe the session was just removed
        raise StoreError(f"the session folder {folder} cannot be read: {error.strerror}") from error
    dead = [name for name in names if not is_locked(os.path.join(folder, name))]
    # One that is gone by now has ended in an orderly way.
    return [name.removesuffix(_NAME) for name in dead if os.path.exists(os.path.join(folder, name))]


def is_in_use(folder: str) -> bool:
    """Whether a process has the session of this folder open."""
    return any(name.endswith(_NAME) and is_locked(os.path.join(folder, name)) for name in os.listdir(folder))


def is_dead(folder: str, runner: str) -> bool:
    """Whether a runner that left something undone is gone: one that ended in an orderly way leaves nothing."""
    return not is_locked(os.path.join(folder, runner + _NAME))


def remove_runner(folder: str, runner: str) -> None:
    """Removes what is left of a dead runner, once everything it left undone is settled."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, runner + _NAME))


# § [store.lease] Who runs the loop of a session: one at a time, in whatever process. The kernel frees it when its
# § process ends.

_LEASE_NAME = "loop.lock"
_held_here: "WeakSet[Lease]" = WeakSet()


def _leave_lease_to_parent() -> None:
    """A forked child has a copy of the lock, and would hold it after its parent's end."""
    for lease in list(_held_here):
        lease.release()


os.register_at_fork(after_in_child=_leave_lease_to_parent)


class Lease:
    """`with Lease(folder, session_id):`; UsageError at once where somebody else has it, be it in this process."""

    def __init__(self, folder: str, session_id: str) -> None:
        self._path = os.path.join(folder, _LEASE_NAME)
        self._session_id = session_id
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"the lock {self._path} cannot be made: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise UsageError(
                f"session {self._session_id} is at work in {holder}; wait until its turn is over, or fork the session"
            ) from None
        self._descriptor = descriptor
        _held_here.add(self)
        with suppress(OSError):  # a full disk: it is only for the words of whoever comes too late
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Lets the next one have it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _holder(descriptor: int) -> str:
    process = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    if process == str(os.getpid()):
        return "this process"
    return f"process {process}" if process else "another process"
