"""Who runs the loop of a session: one at a time, in whatever process. The kernel frees it when its process ends."""

import fcntl
import os
from contextlib import suppress
from typing import Self
from weakref import WeakSet

from handrail.protocol.error import StoreError, UsageError

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
