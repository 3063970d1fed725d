"""The pipes that a command prints into."""

import contextlib
import fcntl
import os
from typing import Self

PIPE_CAPACITY_BYTES = 1 << 20
"""Fewer and larger reads: a pipe of this size moves twice as much as one of the usual 64 KB."""
_SET_CAPACITY = getattr(fcntl, "F_SETPIPE_SZ", 1031)


class Pipes:
    """One pipe for both streams, or one for each. Who has this closes it."""

    def __init__(self, count: int) -> None:
        self.reading: list[int] = []
        self.writing: list[int] = []
        try:
            for _ in range(count):
                self._add()
        except BaseException:
            self.close()
            raise

    def close_child_ends(self) -> None:
        """Closes here the ends that belong to the command; to be called once it has them."""
        _close(self.writing)

    def close(self) -> None:
        """Closes all of them; can be repeated."""
        self.close_child_ends()
        _close(self.reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self) -> None:
        reading, writing = os.pipe()
        self.reading.append(reading)
        self.writing.append(writing)
        os.set_blocking(reading, False)
        with contextlib.suppress(OSError):  # the user's pipes have used up what the machine gives them
            fcntl.fcntl(reading, _SET_CAPACITY, PIPE_CAPACITY_BYTES)


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())
