"""Folders on the way to a new file."""

import contextlib
import os


class NewFolders:
    """Folders made on the way to a new file; taken back unless the file got there."""

    def __init__(self, folder: int, names: tuple[str, ...]) -> None:
        self._made: list[tuple[int, str]] = []
        self.innermost = os.dup(folder)
        self._kept = False
        try:
            for name in names:
                self._enter(name)
        except OSError:
            self.close()
            raise

    def keep(self) -> None:
        """The file is there: the folders stay."""
        self._kept = True

    def close(self) -> None:
        """Gives the descriptors back, innermost first."""
        os.close(self.innermost)
        for outer, name in reversed(self._made):
            if not self._kept:
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=outer)
            os.close(outer)

    def _enter(self, name: str) -> None:
        new = True
        try:
            os.mkdir(name, dir_fd=self.innermost)
        except FileExistsError:
            new = False
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.innermost)
        except OSError:
            if new:
                os.rmdir(name, dir_fd=self.innermost)
            raise
        if new:
            self._made.append((self.innermost, name))
        else:
            os.close(self.innermost)
        self.innermost = inner


def sync_folder(folder: int) -> None:
    """Makes the new name survive power loss, where the folder can be opened for it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
