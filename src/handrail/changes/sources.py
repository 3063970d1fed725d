"""Files of overlays, reached by descriptors and past no link."""

import contextlib
import os
import stat
from collections.abc import Generator, Iterator

from handrail.changes.manners import OverlayFile
from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.workspace.atomic import open_source

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_CHUNK_BYTES = 1 << 20


def read_overlay_file(source: OverlayFile) -> Iterator[bytes]:
    """The bytes of a file of an overlay."""
    with open_source_parent(source) as place:
        descriptor = open_source(place)
        try:
            while chunk := os.read(descriptor, _CHUNK_BYTES):
                yield chunk
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def open_source_parent(source: OverlayFile) -> Generator[tuple[int, str]]:
    """The folder of a file of an overlay, and its name there."""
    folder, _, name = source.path.rpartition("/")
    if os.geteuid() != 0 and folder:
        _open_up(source.top, folder)
    descriptor = openat2(source.top, folder or ".", _FOLDER, resolve=RESOLVE_NO_SYMLINKS)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def _open_up(top: int, folder: str) -> None:
    """Lets the owner take things out of the folders of an overlay. It is thrown away afterwards, so they stay open."""
    inner = os.dup(top)
    try:
        for name in folder.split("/"):
            outer, inner = inner, os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=inner)
            os.close(outer)
            mode = stat.S_IMODE(os.fstat(inner).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(f"/proc/self/fd/{inner}", mode | stat.S_IRWXU)
    finally:
        os.close(inner)
