"""What an overlay lies on: a root, or a root with earlier overlays over it, as a command saw them together."""

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple, Self

from handrail.changes.layered.marks import is_opaque, is_whiteout
from handrail.workspace.resolve import LIST_FOLDER


class DirEntry(NamedTuple):
    """Where an entry is, and what it is. The descriptor is that of its folder, and open as long as that is walked."""

    folder: int
    name: str
    status: os.stat_result
    ours: bool = False
    """Whether it is in an overlay, and so ours to open."""

    @property
    def is_folder(self) -> bool:
        """Whether it is one: a link to one is not."""
        return stat.S_ISDIR(self.status.st_mode)


class LowerDir:
    """One folder of it. Of the folders that have a name, the latest says what it is."""

    def __init__(self, folders: tuple[int, ...], *, has_root: bool) -> None:
        """`folders`: open descriptors, the latest first; they are closed with it. `has_root`: the last one is the
        root's own, where nothing is a mark but a whiteout that is a device."""
        self._folders = folders
        self._layers = len(folders) - has_root

    def root_ctime(self) -> int:
        """When entries came or went here in the root itself; 0 where it has no such folder."""
        return os.fstat(self._folders[-1]).st_ctime_ns if self._layers < len(self._folders) else 0

    def find(self, name: str) -> DirEntry | None:
        """What has a name here."""
        return self._find(name, self._folders)

    def enter(self, name: str) -> "LowerDir | None":
        """The folder of a name; None where there is none."""
        with contextlib.ExitStack() as opened:
            entered: list[int] = []
            last = -1
            for number, folder in enumerate(self._folders):
                found = self._find(name, (folder,), number)
                if found is None and not _is_there(folder, name):
                    continue
                if found is None or not found.is_folder:
                    break
                entered.append(os.open(name, LIST_FOLDER, dir_fd=folder))
                opened.callback(os.close, entered[-1])
                last = number
                if number < self._layers and is_opaque(entered[-1]):
                    break
            opened.pop_all()
        return LowerDir(tuple(entered), has_root=last == self._layers) if entered else None

    def names(self) -> Iterator[str]:
        """The entries that are to be seen here."""
        if len(self._folders) == 1 and not self._layers:
            yield from os.listdir(self._folders[0])
            return
        every = {name for folder in self._folders for name in os.listdir(folder)}
        yield from (name for name in every if self.find(name) is not None)

    def close(self) -> None:
        """Gives the descriptors back."""
        for folder in self._folders:
            os.close(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self, name: str, folders: tuple[int, ...], start: int = 0) -> DirEntry | None:
        for number, folder in enumerate(folders, start):
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            ours = number < self._layers
            if (ours or stat.S_ISCHR(status.st_mode)) and is_whiteout(folder, name, status):
                return None
            return DirEntry(folder, name, status, ours)
        return None


def open_lower_dir(root: str, uppers: tuple[str, ...]) -> LowerDir:
    """What lies under an overlay, from its top. `uppers`: those of earlier overlays, the latest first."""
    with contextlib.ExitStack() as opened:
        folders: list[int] = []
        for path in (*uppers, root):
            folders.append(os.open(path, LIST_FOLDER))
            opened.callback(os.close, folders[-1])
        opened.pop_all()
    return LowerDir(tuple(folders), has_root=True)


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
