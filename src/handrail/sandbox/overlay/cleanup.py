"""Removal of overlays, now or in a background thread."""

import atexit
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

from handrail.kernel.folder_removal import OPEN_FOLDER, empty_folder


def remove_folder(folder: str) -> None:
    """Remove a folder with everything in it. No process may be at work in it. OSError if that fails."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(folder, OPEN_FOLDER)
        try:
            empty_folder(descriptor)
        finally:
            os.close(descriptor)
        os.rmdir(folder)


class Removal(NamedTuple):
    """A removal that the thread was asked for."""

    work: Callable[[], None]
    done: threading.Event
    thread: threading.Thread

    def wait(self) -> None:
        """Wait for the end. Returns at once in a forked process, which does not have the thread."""
        if self.thread.is_alive():
            self.done.wait()


class _RemovalThread:
    def __init__(self) -> None:
        self._removals: queue.SimpleQueue[Removal] = queue.SimpleQueue()
        # A daemon, so that it does not keep Python from ending. `wait_for_all` waits for pending removals.
        self.thread = threading.Thread(target=self._work, name="handrail-layers", daemon=True)
        self.latest: Removal | None = None

    def add(self, work: Callable[[], None]) -> Removal:
        self.latest = removal = Removal(work, threading.Event(), self.thread)
        self._removals.put(removal)
        return removal

    def _work(self) -> None:
        while True:
            removal = self._removals.get()
            try:
                with contextlib.suppress(OSError):
                    removal.work()
            finally:
                removal.done.set()


_lock = threading.Lock()
_threads: list[_RemovalThread] = []
"""At most one: starting a thread takes longer than most removals."""


def remove_later(work: Callable[[], None]) -> Removal | None:
    """Let the thread do the work. None if no thread can start: then the work is done already."""
    with _lock:
        if not (_threads and _threads[0].thread.is_alive()):
            new = _RemovalThread()  # a forked process has no thread, and leaves pending removals to its parent
            try:
                new.thread.start()
            except RuntimeError:  # no room for a thread, or Python is about to end
                _threads.clear()
            else:
                _threads[:] = [new]
        if _threads:
            return _threads[0].add(work)
    work()
    return None


@atexit.register
def wait_for_all() -> None:
    """Wait for all pending removals. They are done in order."""
    for thread in tuple(_threads):
        if thread.latest is not None:
            thread.latest.wait()
