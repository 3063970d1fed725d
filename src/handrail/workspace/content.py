"""Bytes that are to be written, and how they get onto the disk."""

import hashlib
import os
from collections.abc import Callable, Iterable

import msgspec


class Content(msgspec.Struct, frozen=True):
    """Bytes that are to be written, at hand or read piece by piece."""

    hash: str
    size: int
    pieces: Callable[[], Iterable[bytes]]


def content_of(data: bytes) -> Content:
    """Bytes that are at hand."""
    return Content(hashlib.sha256(data).hexdigest(), len(data), lambda: (data,))


def fill(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Writes all of the pieces."""
    for piece in pieces:
        view = memoryview(piece)
        while view:
            view = view[os.write(descriptor, view) :]
