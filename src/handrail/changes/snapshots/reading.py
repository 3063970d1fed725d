"""Reads what a path holds, never through a link."""

import contextlib
import os
import stat
from collections.abc import Generator

from handrail.changes.snapshots.marks import PathStat, to_path_stat
from handrail.changes.snapshots.patience import MAX_FILE_BYTES, SnapshotDeadline
from handrail.workspace.file_state import read_contents, read_start
from handrail.workspace.resolve import INSPECT, READ_FILE, open_beneath
from handrail.workspace.roots import Root


def read_content(root: Root, path: str, mark: PathStat, *, kernel: bool) -> tuple[PathStat, bytes]:
    """The bytes of a file, or where a link leads, with what the path was at that moment; OSError where it is no longer
    of its kind, or too large."""
    if mark.kind == "link":
        return _link(root, path, kernel=kernel)
    with _open_file(root, path, kernel=kernel) as (descriptor, status):
        data = read_start(descriptor, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError("it is too large by now")
    return to_path_stat(status), data


def hash_file(root: Root, path: str, patience: SnapshotDeadline, *, kernel: bool) -> tuple[PathStat, str]:
    """The hash of a file that is too large to be held in memory, with what the path was at that moment."""
    with _open_file(root, path, kernel=kernel) as (descriptor, status):
        return to_path_stat(status), read_contents(descriptor, status.st_size, check=patience.check).hash


@contextlib.contextmanager
def _open_file(root: Root, path: str, *, kernel: bool) -> Generator[tuple[int, os.stat_result]]:
    descriptor = open_beneath(root.descriptor, path, READ_FILE, kernel=kernel)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no file any more")
        yield descriptor, status
    finally:
        os.close(descriptor)


def _link(root: Root, path: str, *, kernel: bool) -> tuple[PathStat, bytes]:
    folder, _, name = path.rpartition("/")
    above = open_beneath(root.descriptor, folder or ".", INSPECT | os.O_DIRECTORY, kernel=kernel)
    try:
        target = os.fsencode(os.readlink(name, dir_fd=above))
        return to_path_stat(os.lstat(name, dir_fd=above)), target
    finally:
        os.close(above)
