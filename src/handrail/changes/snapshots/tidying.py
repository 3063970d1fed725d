"""Sees to it that all can be looked at that a command left behind which nobody was asked about.

What it closed to its owner would hide what it did there, and stand in the way when that is undone; so would a named
pipe in the place of a file. An overlay has neither problem: there such a thing is seen, and not committed.
"""

import contextlib
import os
import stat

from handrail.changes.snapshots.marks import PathStat, to_path_stat
from handrail.workspace.resolve import INSPECT, open_beneath
from handrail.workspace.roots import Root

_NEEDED = {"file": (stat.S_IRUSR, stat.S_IRUSR | stat.S_IWUSR), "folder": (stat.S_IRUSR | stat.S_IXUSR, stat.S_IRWXU)}


def tidy_path(root: Root, path: str, mark: PathStat, *, kernel: bool) -> PathStat | None:
    """What is at a path then; None where it was nothing that is kept. What cannot be done is let be."""
    if mark.kind == "other":
        return None if _is_removed(root, path, kernel=kernel) else mark
    least, given = _NEEDED.get(mark.kind, (0, 0))
    if mark.mode & least == least or os.geteuid() == 0:
        return mark
    with contextlib.suppress(OSError):
        return _opened_up(root, path, mark, given, kernel=kernel)
    return mark


def _is_removed(root: Root, path: str, *, kernel: bool) -> bool:
    folder, _, name = path.rpartition("/")
    try:
        above = open_beneath(root.descriptor, folder or ".", INSPECT | os.O_DIRECTORY, kernel=kernel)
        try:
            found = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
            if stat.S_ISFIFO(found) or stat.S_ISSOCK(found):
                os.unlink(name, dir_fd=above)
                return True
        finally:
            os.close(above)
    except OSError:
        pass
    return False


def _opened_up(root: Root, path: str, mark: PathStat, given: int, *, kernel: bool) -> PathStat:
    descriptor = open_beneath(root.descriptor, path, INSPECT, kernel=kernel)
    try:
        if to_path_stat(os.fstat(descriptor)) == mark:  # and no link, nor anybody else's file
            os.chmod(f"/proc/self/fd/{descriptor}", mark.mode | given)
        return to_path_stat(os.fstat(descriptor))
    finally:
        os.close(descriptor)
