"""Removes overlays."""

import atexit
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

# § [sandbox.layer.removal] Removes overlays: whatever commands made in them, and those of processes that were
# § killed.

_MAX_LEVELS = 10
"""Folders below one another whose path is sure to be one that the system opens, and does not grow the stack."""


def remove_folder(folder: str) -> None:
    """Removes a folder of ours with everything in it: closed folders too, and those that lie very deep. Nobody else may
    be at work in it. OSError where that is not possible."""
    with contextlib.suppress(FileNotFoundError):
        while _emptied(folder, folder, 0):
            pass
        os.rmdir(folder)


def _emptied(folder: str, top: str, depth: int) -> bool:
    """Empties a folder; whether something was moved to the top, to be removed from there."""
    try:
        return _empty(folder, top, depth)
    except PermissionError:  # overlayfs closes its own folders, and a command may close any
        os.chmod(folder, 0o700)
        return _empty(folder, top, depth)


def _empty(folder: str, top: str, depth: int) -> bool:
    with os.scandir(folder) as found:
        entries = list(found)
    moved = False
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
        elif depth < _MAX_LEVELS:
            moved = _emptied(entry.path, top, depth + 1) or moved
            os.rmdir(entry.path)
        else:
            _move(entry.path, os.path.join(top, os.urandom(8).hex()))
            moved = True
    return moved


def _move(folder: str, place: str) -> None:
    try:
        os.rename(folder, place)
    except PermissionError:  # a folder that goes to another one is written to
        os.chmod(folder, 0o700)
        os.rename(folder, place)


# § [sandbox.layer.sweeper] A thread that does away with things while everybody else goes on: a disk takes its time
# § to forget folders. There is one for a process, made once: to start a thread takes longer than most removals do.


class Removal(NamedTuple):
    """Something that is about to be removed."""

    work: Callable[[], None]
    done: threading.Event
    thread: threading.Thread

    def wait(self) -> None:
        """Waits until it is. Not in a process that was forked meanwhile: the thread is the other one's."""
        if self.thread.is_alive():
            self.done.wait()


class _Sweeper:
    def __init__(self) -> None:
        self._removals: queue.SimpleQueue[Removal] = queue.SimpleQueue()
        # It does not keep Python from ending, as it waits for more to do; what is left to do does, below.
        self.thread = threading.Thread(target=self._go_on, name="handrail-layers", daemon=True)
        self._latest: Removal | None = None

    def take(self, work: Callable[[], None]) -> Removal:
        self._latest = removal = Removal(work, threading.Event(), self.thread)
        self._removals.put(removal)
        return removal

    def wait(self) -> None:
        """Waits for all of it: they are done one after the other."""
        if self._latest is not None:
            self._latest.wait()

    def _go_on(self) -> None:
        while True:
            removal = self._removals.get()
            try:
                with contextlib.suppress(OSError):
                    removal.work()
            finally:
                removal.done.set()


_lock = threading.Lock()
_current: list[_Sweeper] = []


def remove_later(work: Callable[[], None]) -> Removal | None:
    """Has something removed, without waiting for it. None where there can be no thread: then it is removed already."""
    with _lock:
        if not (_current and _current[0].thread.is_alive()):
            sweeper = _Sweeper()  # with nothing to do of one that a forked process has from its parent
            try:
                sweeper.thread.start()
            except RuntimeError:  # no room for a thread, or Python is about to end
                _current.clear()
            else:
                _current[:] = [sweeper]
        if _current:
            return _current[0].take(work)
    work()
    return None


@atexit.register
def wait_for_all() -> None:
    """Waits until all is removed that is about to be."""
    for sweeper in tuple(_current):
        sweeper.wait()
