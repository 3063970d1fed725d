"""The log of a background process."""

import contextlib
import os
import time

from handrail.process.keeper.state import format_log_name

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_RETRY_SECONDS = 0.5
"""Seconds after which a disk that was full is tried again."""
_MAX_FILES = 256
"""Of the end: a disk that is full now and then would make many small ones."""


class LogWriter:
    """Takes all that is printed. A disk that is full or broken costs what comes meanwhile, and nothing else."""

    def __init__(self, folder: int, *, head: int, kept: int, segment: int) -> None:
        self.size = 0
        """Bytes so far, also those that were dropped."""
        self.trouble: str | None = None
        """Why some of them were dropped that should have been kept."""
        self._folder = folder
        self._head = head
        self._kept = kept
        self._segment = segment
        self._descriptor = -1
        self._room = 0
        self._old: list[tuple[int, int]] = []
        """Complete files of the end: where each begins, and how long it is."""
        self._begin = 0
        self._again = 0.0

    def add(self, data: bytes | bytearray) -> None:
        """Writes it down."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._written(rest) :]

    def close(self) -> None:
        """Ends the writing; can be repeated."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _written(self, data: memoryview) -> int:
        """How much of it is dealt with; all that is left where it cannot be written."""
        try:
            if self._descriptor < 0:
                self._open()
            count = os.write(self._descriptor, data[: self._room])
        except OSError as error:
            return self._dropped(data, error)
        self.size += count
        self._room -= count
        if not self._room:
            self._finish()
        return count

    def _open(self) -> None:
        if time.monotonic() < self._again:
            raise OSError(None, self.trouble)
        self._descriptor = os.open(format_log_name(self.size), _NEW, 0o600, dir_fd=self._folder)
        self._begin = self.size
        self._room = self._head - self.size if self.size < self._head else self._segment

    def _dropped(self, data: memoryview, error: OSError) -> int:
        self.trouble = error.strerror or self.trouble or "the disk"
        if time.monotonic() >= self._again:
            self._again = time.monotonic() + _RETRY_SECONDS
        if self._descriptor >= 0:
            self._finish()
        self.size += len(data)
        return len(data)

    def _finish(self) -> None:
        self.close()
        if self.size == self._begin:
            self._remove(self._begin)
        elif self._begin >= self._head:
            self._old.append((self._begin, self.size - self._begin))
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        """As many as can go while what is left is still enough."""
        total = sum(size for _, size in self._old)
        while self._old and (total - self._old[0][1] >= self._kept or len(self._old) > _MAX_FILES):
            begin, size = self._old.pop(0)
            total -= size
            self._remove(begin)

    def _remove(self, begin: int) -> None:
        with contextlib.suppress(OSError):  # it was cleared
            os.unlink(format_log_name(begin), dir_fd=self._folder)
