"""Opens what a command left in an overlay: by descriptors and past no link.

The overlay is ours, so what a command closed to itself there (`chmod 000`) is opened to its owner while we look at it,
and then closed again: permissions in an overlay are part of what it says. Nothing beneath it is ever touched so.
"""

import contextlib
import os
import stat
from collections.abc import Generator

from handrail.workspace.resolve import LIST_FOLDER, READ_FILE

_ENTERED = 0o500
_OWNERS = 0o700


@contextlib.contextmanager
def open_overlay_folder(name: str, parent: int | None = None) -> Generator[int]:
    """A folder of an overlay, whatever its permissions are."""
    try:
        descriptor = os.open(name, LIST_FOLDER, dir_fd=parent)
    except PermissionError:
        closed = _open_up(name, parent)
        descriptor = os.open(name, LIST_FOLDER, dir_fd=parent)
    else:
        closed = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if closed & _ENTERED != _ENTERED:
            os.fchmod(descriptor, closed | _OWNERS)
    try:
        yield descriptor
    finally:
        if closed & _ENTERED != _ENTERED:
            os.fchmod(descriptor, closed)
        os.close(descriptor)


def open_overlay_file(name: str, folder: int) -> int:
    """A file of an overlay for reading, whatever its permissions are."""
    try:
        return os.open(name, READ_FILE, dir_fd=folder)
    except PermissionError:
        closed = _open_up(name, folder)
        try:
            return os.open(name, READ_FILE, dir_fd=folder)
        finally:
            os.chmod(name, closed, dir_fd=folder)


@contextlib.contextmanager
def open_overlay_parent(top: str, path: str) -> Generator[tuple[int, str]]:
    """The folder that a path below an overlay's top is in, and its last name."""
    *folders, name = path.split("/")
    with contextlib.ExitStack() as held:
        inner = held.enter_context(open_overlay_folder(top))
        for folder in folders:
            inner = held.enter_context(open_overlay_folder(folder, inner))
        yield inner, name


def _open_up(name: str, folder: int | None) -> int:
    """Opens it to its owner; the permissions that it had. No link is refused for permissions, so it is none."""
    closed = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    os.chmod(name, closed | _OWNERS, dir_fd=folder)
    return closed
