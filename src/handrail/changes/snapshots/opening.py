"""Opens what is in a root, never through a link."""

import os

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PATH_FLAGS = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
"""Without a right to what it holds."""


def open_beneath_root(root: int, path: str, flags: int, *, kernel: bool) -> int:
    """A descriptor beneath a root; no link on the way is followed, nor the last name if it is one."""
    if kernel:
        return openat2(root, path or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, resolve=RESOLVE_NO_SYMLINKS)
    folder = os.open(".", _FOLDER, dir_fd=root)
    *folders, last = (path or ".").split("/")
    try:
        for name in folders:
            folder, outer = os.open(name, _FOLDER, dir_fd=folder), folder
            os.close(outer)
        return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
