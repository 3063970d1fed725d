"""The private folder of a command: its home, its temporary files."""

import fcntl
import os
import time

from handrail.kernel.folder_removal import OPEN_FOLDER, empty_folder
from handrail.kernel.landlock import allow
from handrail.sandbox.supervisor.plan import LandlockFence

PREFIX = "handrail-private-"
_MIN_ABANDONED_SECONDS = 60.0
"""A folder exists for a moment before it is locked."""


class PrivateFolder:
    """A new folder that the command may use. OSError if its name is taken."""

    def __init__(self, fence: LandlockFence) -> None:
        self._path = fence.private
        os.mkdir(self._path, 0o700)
        self._folder = os.open(self._path, OPEN_FOLDER)
        fcntl.flock(self._folder, fcntl.LOCK_EX)  # the kernel releases it when this process ends
        allow(fence.ruleset, self._folder, fence.private_rights)
        os.mkdir("tmp", 0o700, dir_fd=self._folder)
        for name, target in fence.links:
            _make_link(self._folder, [b"home", *name.split(b"/")], target)
        os.close(_make_folder(self._folder, b"home"))

    def remove(self) -> None:
        try:
            os.fchmod(self._folder, 0o700)
            empty_folder(self._folder)
            os.rmdir(self._path)
        except OSError:
            pass
        finally:
            os.close(self._folder)


def remove_abandoned(beside: str) -> None:
    """Remove the private folders that killed supervisors left."""
    for name in os.listdir(beside):
        if name.startswith(PREFIX):
            try:
                _remove_if_abandoned(f"{beside}/{name}")
            except OSError:  # of another user, or in use
                continue


def _remove_if_abandoned(path: str) -> None:
    status = os.lstat(path)
    if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _MIN_ABANDONED_SECONDS:
        return
    folder = os.open(path, OPEN_FOLDER)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        empty_folder(folder)
        os.rmdir(path)
    finally:
        os.close(folder)


def _make_link(folder: int, names: list[bytes], target: bytes) -> None:
    """Make a link and its parent folders, never below another link."""
    above = os.dup(folder)
    try:
        for name in names[:-1]:
            inner = _make_folder(above, name)
            os.close(above)
            above = inner
        os.symlink(target, names[-1], dir_fd=above)
    except OSError:  # the toolchain remains visible at its real path
        pass
    finally:
        os.close(above)


def _make_folder(folder: int, name: bytes) -> int:
    try:  # noqa: SIM105  contextlib is slow to load
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:
        pass
    return os.open(name, OPEN_FOLDER, dir_fd=folder)
