"""Reads what a path holds, never through a link."""

import hashlib
import os
import stat

from handrail.changes.snapshots.marks import PathStat, to_path_stat
from handrail.changes.snapshots.opening import PATH_FLAGS, open_beneath_root
from handrail.changes.snapshots.patience import MAX_FILE_BYTES, SnapshotDeadline
from handrail.workspace.roots import Root

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_PIECE_BYTES = 1 << 20


def read_content(root: Root, path: str, mark: PathStat, *, kernel: bool) -> tuple[PathStat, bytes]:
    """The bytes of a file, or where a link leads, with what the path was at that moment; OSError where it is no longer
    of its kind, or too large."""
    if mark.kind == "link":
        return _link(root, path, kernel=kernel)
    descriptor = open_beneath_root(root.descriptor, path, _READ, kernel=kernel)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no file any more")
        pieces: list[bytes] = []
        left = MAX_FILE_BYTES + 1
        while left > 0 and (piece := os.read(descriptor, min(left, status.st_size + 1))):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise OSError("it is too large by now")
    return to_path_stat(status), b"".join(pieces)


def hash_file(root: Root, path: str, patience: SnapshotDeadline, *, kernel: bool) -> tuple[PathStat, str]:
    """The hash of a file that is too large to be held in memory, with what the path was at that moment."""
    descriptor = open_beneath_root(root.descriptor, path, _READ, kernel=kernel)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no file any more")
        digest = hashlib.sha256()
        while piece := os.read(descriptor, _PIECE_BYTES):
            digest.update(piece)
            patience.check()
    finally:
        os.close(descriptor)
    return to_path_stat(status), digest.hexdigest()


def _link(root: Root, path: str, *, kernel: bool) -> tuple[PathStat, bytes]:
    folder, _, name = path.rpartition("/")
    above = open_beneath_root(root.descriptor, folder, PATH_FLAGS | os.O_DIRECTORY, kernel=kernel)
    try:
        target = os.fsencode(os.readlink(name, dir_fd=above))
        return to_path_stat(os.lstat(name, dir_fd=above)), target
    finally:
        os.close(above)
