"""Where the lines of a large file begin, roughly: one count for each quarter of a megabyte, kept for later pages."""

import os
import threading
from bisect import bisect_left
from collections import OrderedDict

CHUNK_BYTES = 256 * 1024
_MAX_KEPT_INDEXES = 8

Identity = tuple[int, int, int, int]


class LineIndex:
    """How many newlines lie before each chunk, counted as far as anybody needed."""

    def __init__(self, size: int) -> None:
        self._before = [0]
        self._size = size

    @property
    def total(self) -> int | None:
        """All newlines, once the whole file was counted."""
        return self._before[-1] if (len(self._before) - 1) * CHUNK_BYTES >= self._size else None

    def chunk_of(self, descriptor: int, newline: int) -> tuple[int, int] | None:
        """The chunk that holds the n-th newline (from 1) and the newlines before it; None when there are fewer."""
        while self._before[-1] < newline and self.total is None:
            self._count(descriptor)
        if self._before[-1] < newline:
            return None
        chunk = bisect_left(self._before, newline) - 1
        return chunk, self._before[chunk]

    def _count(self, descriptor: int) -> None:
        data = os.pread(descriptor, CHUNK_BYTES, (len(self._before) - 1) * CHUNK_BYTES)
        self._before.append(self._before[-1] + data.count(b"\n"))


class LineIndexes:
    """The indexes of the files paged last, by what the files were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Identity, LineIndex] = OrderedDict()

    def start_of(self, descriptor: int, status: os.stat_result, line: int) -> int | None:
        """The byte at which a line (from 1) begins; None when the file has fewer lines."""
        if line == 1:
            return 0
        with self._lock:
            found = self._index(status).chunk_of(descriptor, line - 1)
        if found is None:
            return None
        chunk, before = found
        data = os.pread(descriptor, CHUNK_BYTES, chunk * CHUNK_BYTES)
        pieces = data.split(b"\n", line - 1 - before)
        start = chunk * CHUNK_BYTES + len(data) - len(pieces[-1])
        return start if start < status.st_size else None

    def total(self, status: os.stat_result) -> int | None:
        """The newlines of a file, if they were counted already."""
        with self._lock:
            index = self._kept.get(_identity(status))
        return index.total if index else None

    def _index(self, status: os.stat_result) -> LineIndex:
        identity = _identity(status)
        index = self._kept.pop(identity, None) or LineIndex(status.st_size)
        self._kept[identity] = index
        if len(self._kept) > _MAX_KEPT_INDEXES:
            self._kept.popitem(last=False)
        return index


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
