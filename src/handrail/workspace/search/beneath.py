"""Opens what lies below an open folder; no link is followed, neither at the end nor on the way."""

import os

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def open_beneath(folder: int, path: str, flags: int, *, kernel: bool) -> int:
    """A descriptor of what is at `path` now; OSError when that is a link, is reached by one, or is gone."""
    if kernel:
        return openat2(folder, path, flags, resolve=RESOLVE_NO_SYMLINKS)
    way, _, name = path.rpartition("/")
    inner = os.dup(folder)
    try:
        for step in way.split("/") if way else ():
            inner, outer = os.open(step, _STEP, dir_fd=inner), inner
            os.close(outer)
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inner)
    finally:
        os.close(inner)
