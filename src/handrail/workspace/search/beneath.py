"""Opens what lies below the folder that is searched; no link is followed, neither at the end nor on the way."""

import os

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.workspace.search.engine import SearchScope

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def open_beneath(where: SearchScope, path: str, flags: int) -> int:
    """A descriptor of what is at `path` now; OSError when that is a link, is reached by one, or is gone."""
    if where.kernel:
        return openat2(where.folder, path, flags, resolve=RESOLVE_NO_SYMLINKS)
    way, _, name = path.rpartition("/")
    inner = os.dup(where.folder)
    try:
        for step in way.split("/") if way else ():
            inner, outer = os.open(step, _STEP, dir_fd=inner), inner
            os.close(outer)
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inner)
    finally:
        os.close(inner)
