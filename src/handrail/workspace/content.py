"""Bytes that are to be written, and how they get onto the disk."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable

import msgspec

_LARGE = 1 << 18
"""Bytes that take longer to hash than a thread takes to start."""


class Content(msgspec.Struct, frozen=True):
    """Bytes that are to be written, at hand or read piece by piece."""

    hash: str
    size: int
    pieces: Callable[[], Iterable[bytes]]


def content_of(data: bytes) -> Content:
    """Bytes that are at hand."""
    return Content(hashlib.sha256(data).hexdigest(), len(data), lambda: (data,))


def hash_meanwhile(data: bytes) -> Callable[[], str]:
    """Begins to hash the bytes; whoever calls what is returned waits for the end. Large ones are hashed by a thread of
    their own, without Python's lock, so that something else can be done meanwhile."""
    if len(data) < _LARGE:
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
    """Writes all of the pieces."""
    for piece in pieces:
        view = memoryview(piece)
        while view:
            view = view[os.write(descriptor, view) :]
