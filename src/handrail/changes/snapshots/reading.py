"""Reads what a path holds, never through a link."""

import hashlib
import os
import stat

from handrail.changes.snapshots.marks import Mark, mark_of
from handrail.changes.snapshots.opening import ITSELF, opened
from handrail.changes.snapshots.patience import LARGEST, Patience
from handrail.workspace.root import Root

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_PIECE = 1 << 20


def content_at(root: Root, path: str, mark: Mark, *, kernel: bool) -> tuple[Mark, bytes]:
    """The bytes of a file, or where a link leads, with what the path was at that moment; OSError where it is no longer
    of its kind, or too large."""
    if mark.kind == "link":
        return _link(root, path, kernel=kernel)
    descriptor = opened(root.descriptor, path, _READ, kernel=kernel)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no file any more")
        pieces: list[bytes] = []
        left = LARGEST + 1
        while left > 0 and (piece := os.read(descriptor, min(left, status.st_size + 1))):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise OSError("it is too large by now")
    return mark_of(status), b"".join(pieces)


def hash_at(root: Root, path: str, patience: Patience, *, kernel: bool) -> tuple[Mark, str]:
    """The hash of a file that is too large to be held in memory, with what the path was at that moment."""
    descriptor = opened(root.descriptor, path, _READ, kernel=kernel)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no file any more")
        digest = hashlib.sha256()
        while piece := os.read(descriptor, _PIECE):
            digest.update(piece)
            patience.check()
    finally:
        os.close(descriptor)
    return mark_of(status), digest.hexdigest()


def _link(root: Root, path: str, *, kernel: bool) -> tuple[Mark, bytes]:
    folder, _, name = path.rpartition("/")
    above = opened(root.descriptor, folder, ITSELF | os.O_DIRECTORY, kernel=kernel)
    try:
        target = os.fsencode(os.readlink(name, dir_fd=above))
        return mark_of(os.lstat(name, dir_fd=above)), target
    finally:
        os.close(above)
