"""The folder that a command has to itself: its home and its temporary files."""

import fcntl
import os
import stat
import time

from handrail.kernel.landlock import allow
from handrail.sandbox.supervisor.plan import LandlockFence

PREFIX = "handrail-private-"
_MIN_ABANDONED_SECONDS = 60.0  # seconds: a folder is made before it is locked
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class PrivateFolder:
    """Made for a command, and allowed to it; OSError where the name is taken, whoever took it."""

    def __init__(self, fence: LandlockFence) -> None:
        self._path = fence.private
        os.mkdir(self._path, 0o700)
        self._folder = os.open(self._path, _OPEN)
        fcntl.flock(self._folder, fcntl.LOCK_EX)  # as long as this process lives, whatever becomes of it
        allow(fence.ruleset, self._folder, fence.private_rights)
        os.mkdir("tmp", 0o700, dir_fd=self._folder)
        for name, place in fence.links:
            _link(self._folder, [b"home", *name.split(b"/")], place)
        os.close(_open_new(self._folder, b"home"))

    def remove(self) -> None:
        """Removes it with all that is in it, as far as that can be done."""
        try:
            os.fchmod(self._folder, 0o700)
            empty(self._folder)
            os.rmdir(self._path)
        except OSError:
            pass
        finally:
            os.close(self._folder)


def remove_abandoned(beside: str) -> None:
    """Removes the private folders of supervisors that were killed before they could."""
    for name in os.listdir(beside):
        if name.startswith(PREFIX):
            try:
                _remove_if_abandoned(f"{beside}/{name}")
            except OSError:  # another's, or in use
                continue


def _remove_if_abandoned(path: str) -> None:
    status = os.lstat(path)
    if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _MIN_ABANDONED_SECONDS:
        return
    folder = os.open(path, _OPEN)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        empty(folder)
        os.rmdir(path)
    finally:
        os.close(folder)


def _link(folder: int, names: list[bytes], place: bytes) -> None:
    """Makes a link, and the folders that it is in; never in what another link leads to."""
    above = os.dup(folder)
    try:
        for name in names[:-1]:
            inner = _open_new(above, name)
            os.close(above)
            above = inner
        os.symlink(place, names[-1], dir_fd=above)
    except OSError:  # the toolchain is still at its real place
        pass
    finally:
        os.close(above)


def _open_new(folder: int, name: bytes) -> int:
    try:  # noqa: SIM105  contextlib costs a start
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:
        pass
    return os.open(name, _OPEN, dir_fd=folder)


def empty(folder: int) -> None:
    """Removes all that is in the folder, however deep: what is in a folder in it is first moved up into it."""
    while names := os.listdir(folder):
        for name in names:
            if _is_folder(folder, name):
                _remove_folder(folder, name)
            else:
                os.unlink(name, dir_fd=folder)


def _remove_folder(folder: int, name: str) -> None:
    os.chmod(name, 0o700, dir_fd=folder)
    inner = os.open(name, _OPEN, dir_fd=folder)
    try:
        for inside in os.listdir(inner):
            if _is_folder(inner, inside):
                _move_up(inner, inside, folder)
            else:
                os.unlink(inside, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)


def _move_up(inner: int, name: str, folder: int) -> None:
    os.chmod(name, 0o700, dir_fd=inner)  # to be moved, it must be writable itself
    os.rename(name, os.urandom(16).hex(), src_dir_fd=inner, dst_dir_fd=folder)


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode)
