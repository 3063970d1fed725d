"""Bytes that are to be written, and how they get onto the disk."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable

import msgspec

_MIN_THREADED_BYTES = 1 << 18
"""Bytes that take longer to hash than a thread takes to start."""
_ZEROS = bytes(1 << 16)


class Content(msgspec.Struct, frozen=True):
    """Bytes that are to be written, at hand or read piece by piece."""

    hash: str
    size: int
    pieces: Callable[[], Iterable[bytes]]


def build_content(data: bytes) -> Content:
    """Bytes that are at hand."""
    return Content(hashlib.sha256(data).hexdigest(), len(data), lambda: (data,))


def start_hash(data: bytes) -> Callable[[], str]:
    """Begins to hash the bytes; whoever calls what is returned waits for the end. Large ones are hashed by a thread of
    their own, without Python's lock, so that something else can be done meanwhile."""
    if len(data) < _MIN_THREADED_BYTES:
        digest = hashlib.sha256(data).hexdigest()
        return lambda: digest
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(hashlib.sha256(data).hexdigest()), daemon=True)
    thread.start()

    def wait() -> str:
        thread.join()
        return found[0]

    return wait


def fill(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Writes all of the pieces. Long runs of zeros take no room on the disk."""
    gap = False
    for piece in pieces:
        gap = _write(descriptor, piece, gap=gap)
    if gap:
        os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR))


def _write(descriptor: int, piece: bytes, *, gap: bool) -> bool:
    """Whether the file ends with a gap that nothing was written behind."""
    if len(piece) < len(_ZEROS) or _ZEROS not in piece:
        _write_all(descriptor, memoryview(piece))
        return gap and not piece
    whole = memoryview(piece)
    for start in range(0, len(piece), len(_ZEROS)):
        part = whole[start : start + len(_ZEROS)]
        gap = bytes(part) == _ZEROS
        if gap:
            os.lseek(descriptor, len(part), os.SEEK_CUR)
        else:
            _write_all(descriptor, part)
    return gap


def _write_all(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]
