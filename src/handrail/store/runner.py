"""Who is at work on a session: a locked file that the kernel frees when its process ends, however it ends."""

import contextlib
import fcntl
import os
from weakref import WeakSet

from handrail.protocol.error import StoreError
from handrail.store.locked_folder import is_locked

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
