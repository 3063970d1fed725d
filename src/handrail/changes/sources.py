"""Files of overlays, reached by descriptors and past no link."""

import contextlib
import os
import stat
from collections.abc import Generator, Iterator
from itertools import islice

from handrail.changes.manners import OverlayFile
from handrail.workspace.atomic import open_source
from handrail.workspace.file_state import read_chunks
from handrail.workspace.resolve import ENTER_FOLDER, enter_folders, open_beneath


def read_overlay_file(source: OverlayFile) -> Iterator[bytes]:
    """The bytes of a file of an overlay."""
    with open_source_parent(source) as place:
        descriptor = open_source(place)
        try:
            yield from read_chunks(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def open_source_parent(source: OverlayFile) -> Generator[tuple[int, str]]:
    """The folder of a file of an overlay, and its name there."""
    folder, _, name = source.path.rpartition("/")
    if os.geteuid() != 0 and folder:
        _open_up(source.top, folder)
    descriptor = open_beneath(source.top, folder or ".", ENTER_FOLDER, kernel=True)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def _open_up(top: int, folder: str) -> None:
    """Lets the owner take things out of the folders of an overlay. It is thrown away afterwards, so they stay open."""
    for inner in islice(enter_folders(top, folder.split("/")), 1, None):
        mode = stat.S_IMODE(os.fstat(inner).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{inner}", mode | stat.S_IRWXU)
