"""A file for output that memory does not hold."""

import contextlib
import os

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SpillFile:
    """The beginning of an output, in a new file. A disk that is full or broken costs the file and nothing else: it is
    given up at once, since what is written down about the command needs the room."""

    def __init__(self, folder: str, most: int) -> None:
        self.path = os.path.join(folder, f"output-{os.urandom(12).hex()}")
        self.size = 0
        self.trouble: str | None = None
        """Why the file has less than it should."""
        self._most = most
        self._descriptor = -1
        try:
            self._descriptor = os.open(self.path, _NEW, 0o600)
        except OSError as error:
            self.trouble = error.strerror

    def add(self, data: memoryview) -> None:
        """Adds as much of it as still has room."""
        rest = data[: self._most - self.size]
        while rest and self.trouble is None:
            try:
                written = os.write(self._descriptor, rest)
            except OSError as error:
                self.trouble = error.strerror
                self.discard()
                return
            self.size += written
            rest = rest[written:]

    def close(self) -> None:
        """Ends the writing; can be repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def discard(self) -> None:
        """Removes the file; can be repeated."""
        existed = self._descriptor >= 0 or self.size > 0
        self.close()
        self.size = 0
        if existed:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
