"""A layer: a folder that takes in what a command changes, and lies over the roots while it runs.

It lies over the very paths of the roots, so that absolute paths stay true. The roots themselves are only read.
"""

import contextlib
import fcntl
import os
import shutil
from typing import NamedTuple, Self


class Overlaid(NamedTuple):
    """One root with what lies over it."""

    root: str
    """Absolute, without links."""
    upper: str
    """The folder that has what was changed, as overlayfs writes it."""
    work: str
    """For overlayfs alone."""
    below: tuple[str, ...] = ()
    """Uppers of earlier layers that lie in between, the latest first."""


class Layer:
    """The layer of one command. Who has it removes it; its folder is locked as long as its process lives."""

    def __init__(self, folder: str, roots: tuple[str, ...], below: "tuple[Layer, ...]" = ()) -> None:
        """Makes it in a new folder. `below`: layers that it lies on, the latest first; they must stay till it ends."""
        self.folder = folder
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.overlaid = tuple(self._overlay(number, root, below) for number, root in enumerate(roots))
        self.started = os.stat(folder).st_ctime_ns
        """When it was made, by the clock of the file system: what changes beneath it later has a later change time."""
        self.precise_links = os.geteuid() == 0
        """Whether overlayfs keeps names of one file together: then a name that it took apart was taken apart."""

    def _overlay(self, number: int, root: str, below: "tuple[Layer, ...]") -> Overlaid:
        upper, work = (os.path.join(self.folder, f"{name}-{number}") for name in ("upper", "work"))
        os.mkdir(upper, os.stat(root).st_mode & 0o7777)
        os.chmod(upper, os.stat(root).st_mode & 0o7777)
        os.mkdir(work, 0o700)
        uppers = (over.upper for layer in below for over in layer.overlaid if over.root == root)
        return Overlaid(root, upper, work, tuple(uppers))

    def remove(self) -> None:
        """Throws away what was changed; can be repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        for over in self.overlaid:
            with contextlib.suppress(OSError):
                os.chmod(os.path.join(over.work, "work"), 0o700)  # overlayfs leaves it closed
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
