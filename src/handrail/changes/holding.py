"""Holds what a change takes out of the workspace until all of it is done.

If it fails in the middle, the very files go back: with their times, owners and attributes, and on a disk that is
full. If the held files are on another file system than the workspace, they go back from their stored contents.
"""

import contextlib
import os
import shutil

from handrail.workspace.atomic import Away

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class StagingDir:
    """A folder of ours for the files of one change set."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._descriptor = os.open(folder, _FOLDER)
        self._held: dict[bytes, str] = {}
        self._number = 0

    def stash(self, path: bytes) -> Away:
        """Takes in the file of a path."""

        def take_in(folder: int, name: str) -> None:
            self._number += 1
            try:
                os.rename(name, str(self._number), src_dir_fd=folder, dst_dir_fd=self._descriptor)
                self._held[path] = str(self._number)
            except OSError:
                os.unlink(name, dir_fd=folder)

        return take_in

    def unstash(self, path: bytes) -> tuple[int, str] | None:
        """Where the file of a path is held: folder and name; None when it is not. It is handed out once."""
        name = self._held.pop(path, None)
        return (self._descriptor, name) if name is not None else None

    def close(self) -> None:
        """Does away with what is held."""
        os.close(self._descriptor)
        remove_staging_dir(self._folder)


def build_staging_path(history: str, temporary: str) -> str:
    """Where the files of one change set are held: known, so that a crash leaves nothing that cannot be found."""
    return os.path.join(history, "held", temporary)


def remove_staging_dir(folder: str) -> None:
    """Removes held files, also those that a killed process left."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(folder))
