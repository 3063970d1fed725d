"""Holds what a change takes out of the workspace until all of it is done.

If it fails in the middle, the very files go back: with their times, owners and attributes, and on a disk that is
full. Where the holding is on another file system than the workspace, they go back from what was kept of them.
"""

import contextlib
import os
import shutil
import time

from handrail.kernel.spreading import spread
from handrail.workspace.swapping import Away

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PART = 13
"""Bits of a file's number that tell it from others in the same part of a disk, on most disks."""
_SECONDS = 300.0
"""How long a part of a disk is slow where files were made that are removed since."""
_ATTEMPTS = 6
_used_until: dict[int, float] = {}
"""By part of a disk: what this process made there may be gone by now."""


class Holding:
    """A folder of ours for the files of one change set."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._descriptor = os.open(folder, _FOLDER)
        self._held: dict[bytes, str] = {}
        self._number = 0
        self._device = os.fstat(self._descriptor).st_dev
        self._workshop = -1

    def workshop(self, folder: int) -> int | None:
        """Where files that are to get into a folder can be made: some file systems are slow to make new files where
        many went a moment ago. None where it is another file system."""
        if os.fstat(folder).st_dev != self._device:
            return None
        if self._workshop < 0:
            self._workshop = _new_workshop(self._descriptor)
        return self._workshop

    def away(self, path: bytes) -> Away:
        """Takes in the file of a path."""

        def take_in(folder: int, name: str) -> None:
            self._number += 1
            try:
                os.rename(name, str(self._number), src_dir_fd=folder, dst_dir_fd=self._descriptor)
                self._held[path] = str(self._number)
            except OSError:
                os.unlink(name, dir_fd=folder)

        return take_in

    def held(self, path: bytes) -> tuple[int, str] | None:
        """Where the file of a path is held: folder and name; None when it is not. It is handed out once."""
        name = self._held.pop(path, None)
        return (self._descriptor, name) if name is not None else None

    def close(self) -> None:
        """Does away with what is held."""
        for descriptor in (self._workshop, self._descriptor):
            if descriptor >= 0:
                os.close(descriptor)
        remove_held(self._folder)


def _new_workshop(holding: int) -> int:
    """A folder in a holding that lies away from where files are removed: those that are made in it are made faster
    then. Where it comes to lie depends on its name."""
    spread(holding)
    attempt, made = 0, -1
    while made < 0:
        name = os.urandom(4).hex()
        os.mkdir(name, 0o700, dir_fd=holding)
        made = os.open(name, _FOLDER, dir_fd=holding)
        part = os.fstat(made).st_ino >> _PART
        attempt += 1
        if attempt < _ATTEMPTS and time.monotonic() < _used_until.get(part, 0.0):
            os.close(made)
            made = -1
        else:
            _used_until[part] = time.monotonic() + _SECONDS
    return made


def holding_folder(history: str, temporary: str) -> str:
    """Where the files of one change set are held: known, so that a crash leaves nothing that cannot be found."""
    return os.path.join(history, "held", temporary)


def remove_held(folder: str) -> None:
    """Removes a holding, also one that a killed process left."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(folder))
