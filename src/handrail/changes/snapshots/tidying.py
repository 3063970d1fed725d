"""Sees to it that all can be looked at that a command left behind which nobody was asked about.

What it closed to its owner would hide what it did there, and stand in the way when that is taken back; so would a named
pipe in the place of a file. A layer has neither problem: there such a thing is seen, and not kept.
"""

import contextlib
import os
import stat

from handrail.changes.snapshots.marks import Mark, mark_of
from handrail.changes.snapshots.opening import ITSELF, opened
from handrail.workspace.root import Root

_NEEDED = {"file": (stat.S_IRUSR, stat.S_IRUSR | stat.S_IWUSR), "folder": (stat.S_IRUSR | stat.S_IXUSR, stat.S_IRWXU)}


def tidied(root: Root, path: str, mark: Mark, *, kernel: bool) -> Mark | None:
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
        above = opened(root.descriptor, folder, ITSELF | os.O_DIRECTORY, kernel=kernel)
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


def _opened_up(root: Root, path: str, mark: Mark, given: int, *, kernel: bool) -> Mark:
    descriptor = opened(root.descriptor, path, ITSELF, kernel=kernel)
    try:
        if mark_of(os.fstat(descriptor)) == mark:  # and no link, nor anybody else's file
            os.chmod(f"/proc/self/fd/{descriptor}", mark.mode | given)
        return mark_of(os.fstat(descriptor))
    finally:
        os.close(descriptor)
