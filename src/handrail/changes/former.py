"""What files were besides their contents and modes: their attributes, and which of them were one file.

A commit and an undo write it down of what they replace or remove, so that it comes back with it.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping

from handrail.protocol.errors import ToolError
from handrail.store.change_log import FileExtras
from handrail.workspace.file_state import PathState
from handrail.workspace.resolve import LIST_FOLDER
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

_OWN = "user."
_MAX_ROOT_ENTRIES = 300_000
"""Of a root that are looked through for the other names of files."""
_File = tuple[int, int]


def capture_extras(
    workspace: Workspace, places: Mapping[bytes, PathState], dressed: Iterable[bytes] = ()
) -> tuple[FileExtras, ...]:
    """What is worth to be written down of files that are about to be replaced or removed. `dressed`: paths whose
    attributes count even where they have none."""
    counted = set(dressed)
    links = _links(workspace, places)
    found: list[FileExtras] = []
    for path, place in places.items():
        if place.current is None:
            continue
        attributes = read_user_xattrs(workspace, path)
        if attributes or path in counted or path in links:
            found.append(FileExtras(path, attributes, links.get(path)))
    return tuple(found)


def read_user_xattrs(workspace: Workspace, path: bytes) -> dict[str, bytes]:
    """The extended attributes of the user's own that a file has."""
    if not hasattr(os, "listxattr"):
        return {}
    with contextlib.suppress(OSError, ToolError), workspace.open_parent(path) as landing:
        file = f"/proc/self/fd/{landing.folder}/{landing.name}"
        names = [name for name in os.listxattr(file, follow_symlinks=False) if name.startswith(_OWN)]
        return {name: os.getxattr(file, name, follow_symlinks=False) for name in names}
    return {}


def _links(workspace: Workspace, places: Mapping[bytes, PathState]) -> dict[bytes, bytes]:
    """The paths that are names of one file, each with the name that it is to be made from again: one that stays,
    where there is one."""
    names: dict[_File, list[bytes]] = {}
    sizes: dict[_File, int] = {}
    for path, place in places.items():
        if place.current is not None and place.current.status.st_nlink > 1:
            file = (place.current.status.st_dev, place.current.status.st_ino)
            names.setdefault(file, []).append(path)
            sizes[file] = place.current.status.st_nlink
    others = {file for file, known in names.items() if len(known) < sizes[file]}
    stay = _other_names(workspace, others, places) if others else {}
    links: dict[bytes, bytes] = {}
    for file, known in names.items():
        first = stay.get(file, known[0])
        links |= {path: first for path in known if path != first}
    return links


def _other_names(workspace: Workspace, files: set[_File], but: Mapping[bytes, PathState]) -> dict[_File, bytes]:
    """A name in the roots for each of the files that has one, other than those that are about to go."""
    found: dict[_File, bytes] = {}
    numbers = {number for _, number in files}
    for root in {workspace.find_root(path).path: workspace.find_root(path) for path in but}.values():
        start = b"" if root.main else os.fsencode(root.path) + b"/"
        for folder, name, below in _entries(root, numbers):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            file, path = (status.st_dev, status.st_ino), start + below
            if file in files and path not in but:
                found.setdefault(file, path)
            if len(found) == len(files):
                return found
    return found


def _entries(root: Root, numbers: set[int]) -> Iterator[tuple[int, str, bytes]]:
    """The entries of a root that have one of the numbers: open folder, name, and path below the root."""
    waiting, left = [b""], _MAX_ROOT_ENTRIES
    while waiting and left > 0:
        inner = waiting.pop()
        with contextlib.suppress(OSError):
            folder = os.open(inner or b".", LIST_FOLDER, dir_fd=root.descriptor)
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        left -= 1
                        below = inner + b"/" + os.fsencode(entry.name) if inner else os.fsencode(entry.name)
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(below)
                        elif entry.inode() in numbers:
                            yield folder, entry.name, below
            finally:
                os.close(folder)
