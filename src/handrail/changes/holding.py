"""Holds what a change takes out of the workspace until all of it is done.

If it fails in the middle, the very files go back: with their times, owners and attributes, and on a disk that is
full. Where the holding is on another file system than the workspace, they go back from what was kept of them.
"""

import contextlib
import os
import shutil

from handrail.kernel.spreading import spread
from handrail.workspace.swapping import Away

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Holding:
    """A folder of ours for the files of one change set."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        _make(folder)
        self._descriptor = os.open(folder, _FOLDER)
        self._held: dict[bytes, str] = {}
        self._number = 0
        self._device = os.fstat(self._descriptor).st_dev

    def workshop(self, folder: int) -> int | None:
        """Where files that are to get into a folder can be made: some file systems are slow to make new files where
        many went a moment ago. None where it is another file system."""
        return self._descriptor if os.fstat(folder).st_dev == self._device else None

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
        os.close(self._descriptor)
        remove_held(self._folder)


def _make(folder: str) -> None:
    """Makes it away from where files are removed: those that are made in it are made faster then."""
    around = os.path.dirname(folder)
    os.makedirs(around, mode=0o700, exist_ok=True)
    descriptor = os.open(around, _FOLDER)
    try:
        spread(descriptor)
    finally:
        os.close(descriptor)
    os.makedirs(folder, mode=0o700, exist_ok=True)  # whoever removed another one may have taken what is around it


def holding_folder(history: str, temporary: str) -> str:
    """Where the files of one change set are held: known, so that a crash leaves nothing that cannot be found."""
    return os.path.join(history, "held", temporary)


def remove_held(folder: str) -> None:
    """Removes a holding, also one that a killed process left."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(folder))
