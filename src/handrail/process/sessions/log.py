"""The log of a process session, read from its files; whoever writes them may go on meanwhile."""

import contextlib
import os
from collections.abc import Generator, Iterator
from typing import NamedTuple

from handrail.process.keeper.files import ASKED, CLEARED, END, LOG, format_log_name, make_empty, read_json
from handrail.process.sessions.known import has_keeper

_PIECE_BYTES = 1 << 18


class _LogPart(NamedTuple):
    begin: int
    end: int


class ProcessLog:
    """What a process session has printed. Positions count all bytes from the first on, also those that are dropped."""

    def __init__(self, folder: str) -> None:
        self._path = folder

    @property
    def size(self) -> int:
        """Bytes that it has printed."""
        with _opened(self._path) as folder:
            return _size(folder, _parts(folder))

    @property
    def dropped(self) -> int:
        """Of these, how many are not kept."""
        with _opened(self._path) as folder:
            parts = _parts(folder)
            cleared = _cleared(folder)
            kept = sum(part.end - max(part.begin, cleared) for part in parts if part.end > cleared)
            return _size(folder, parts) - kept

    def kept(self) -> Iterator[bytes]:
        """All that is kept: the beginning, then the end, in pieces."""
        position, size = 0, self.size
        while position < size:
            found, data = self.read_from(position, min(_PIECE_BYTES, size - position))
            if not data or found >= size:
                return
            yield data[: size - found]
            position = found + len(data)

    def read_from(self, position: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from a position on, or from the next one that is kept; and where they begin."""
        with _opened(self._path) as folder:
            _say_that_somebody_asked(folder)
            return _read_from(folder, position, limit)

    def last(self, limit: int) -> bytes:
        """The end of it; nobody counts as having asked for it."""
        with _opened(self._path) as folder:
            return _read_from(folder, max(0, _size(folder, _parts(folder)) - limit), limit)[1]

    def mark_asked(self) -> None:
        """Somebody uses it in another way than by its log: it is not idle."""
        with _opened(self._path) as folder:
            _say_that_somebody_asked(folder)

    def clear(self) -> None:
        """Drops what was printed so far; it is counted as dropped."""
        with _opened(self._path) as folder:
            parts = _parts(folder)
            size = _size(folder, parts)
            make_empty(folder, f"{CLEARED}{size:020d}")
            for part in parts[:-1] if has_keeper(self._path) else parts:  # the last one may be written to
                _remove(folder, format_log_name(part.begin))
            for name in _names(folder, CLEARED)[:-1]:
                _remove(folder, name)


def _read_from(folder: int, position: int, limit: int) -> tuple[int, bytes]:
    while True:
        parts = _parts(folder)
        start = max(position, _cleared(folder))
        part = next((part for part in parts if part.end > start), None)
        if part is None or limit <= 0:
            return max(position, _size(folder, parts)) if part is None else start, b""
        start = max(start, part.begin)
        with contextlib.suppress(FileNotFoundError):  # it was dropped a moment ago: the next one, then
            return start, b"".join(_stretch(folder, parts[parts.index(part) :], start, limit))


def _stretch(folder: int, parts: list[_LogPart], start: int, limit: int) -> Iterator[bytes]:
    """Bytes of files that follow each other without a gap; FileNotFoundError where the first is gone."""
    for number, part in enumerate(parts):
        if part.begin > start or limit <= 0:
            return
        try:
            data = _read_part(folder, part, start, limit)
        except FileNotFoundError:
            if number:
                return
            raise
        yield data
        start, limit = start + len(data), limit - len(data)
        if start < part.end:
            return


def _read_part(folder: int, part: _LogPart, start: int, limit: int) -> bytes:
    descriptor = os.open(format_log_name(part.begin), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.pread(descriptor, min(limit, part.end - start), start - part.begin)
    finally:
        os.close(descriptor)


def _parts(folder: int) -> list[_LogPart]:
    """The files, in order."""
    parts: list[_LogPart] = []
    for name in _names(folder, LOG):
        with contextlib.suppress(OSError):
            begin = int(name.removeprefix(LOG))
            parts.append(_LogPart(begin, begin + os.stat(name, dir_fd=folder).st_size))
    return parts


def _size(folder: int, parts: list[_LogPart]) -> int:
    """Who has ended says it; while it runs it is where the last file ends, and at least what was cleared."""
    end = read_json(folder, END) or {}
    said = end.get("size")
    return max(said if isinstance(said, int) else 0, _cleared(folder), parts[-1].end if parts else 0)


def _cleared(folder: int) -> int:
    names = _names(folder, CLEARED)
    return int(names[-1].removeprefix(CLEARED)) if names else 0


def _names(folder: int, beginning: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith(beginning))


def _say_that_somebody_asked(folder: int) -> None:
    with contextlib.suppress(OSError):
        os.utime(ASKED, dir_fd=folder)


def _remove(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)


@contextlib.contextmanager
def _opened(path: str) -> Generator[int]:
    """The folder, so that it stays the same one; one that was removed is an empty one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        descriptor = os.open("/proc/self/fdinfo", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
