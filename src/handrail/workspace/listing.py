"""Lists a folder, some levels deep, without following links and without holding more than asked for."""

import heapq
import os
import stat
from collections import deque
from collections.abc import Iterator

import msgspec

from handrail.policy.names import find_protection
from handrail.protocol.decision import FileKind
from handrail.workspace.ignore import IgnoreStack

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ListingEntry(msgspec.Struct, frozen=True):
    """One name in a listing."""

    path: str
    kind: FileKind
    size: int | None = None
    note: str | None = None
    """Why nothing is shown of it, or of what is in it."""


class FolderListing(msgspec.Struct, frozen=True):
    """Entries in the order they are shown, and how many there are."""

    entries: tuple[ListingEntry, ...]
    total: int
    exact: bool
    """Whether everything was counted; else there are more than `total`."""


class _Folder(msgspec.Struct):
    path: str
    depth: int
    ignore: IgnoreStack
    names: list[ListingEntry]


def list_tree(root: int, depth: int, limit: int, ignore: IgnoreStack) -> FolderListing:
    """Upper levels first, so that a huge folder deep down never hides what is beside it."""
    top = _Folder("", 1, ignore, [])
    folders = {"": top}
    waiting = deque([top])
    left, total, exact = limit, 0, True
    while waiting:
        folder = waiting.popleft()
        if left <= 0:
            exact = False
            break
        folder.names, count = _names(root, folder, left)
        left, total = left - len(folder.names), total + count
        if folder.depth < depth:
            # A folder that is not shown is not entered either, and nobody knows what is in it.
            exact = exact and count == len(folder.names)
            waiting.extend(_below(root, folder, folders))
    return FolderListing(tuple(_in_order(folders, "")), total, exact)


def _names(root: int, folder: _Folder, limit: int) -> tuple[list[ListingEntry], int]:
    """The first names of a folder, and how many it has."""
    count = 0

    def entries(descriptor: int) -> Iterator[ListingEntry]:
        nonlocal count
        with os.scandir(descriptor) as found:
            for item in found:
                count += 1
                yield _entry(item, folder.path)

    try:
        descriptor = _enter(root, folder.path)
    except OSError:
        return [], 0
    try:
        first = heapq.nsmallest(limit, entries(descriptor), key=lambda entry: (entry.kind != "directory", entry.path))
    finally:
        os.close(descriptor)
    return [_noted(entry, folder.ignore) for entry in first], count


def _entry(item: os.DirEntry[str], folder: str) -> ListingEntry:
    path = f"{folder}{item.name}"
    try:
        status = item.stat(follow_symlinks=False)
    except OSError:
        return ListingEntry(path, "other", note="unreadable")
    kind = _kind(status.st_mode)
    return ListingEntry(path, kind, status.st_size if kind == "file" else None)


def _noted(entry: ListingEntry, ignore: IgnoreStack) -> ListingEntry:
    """A folder that is not entered says why."""
    name = entry.path.rpartition("/")[2]
    if entry.kind != "directory":
        return entry
    if find_protection(name) == "credential":
        return ListingEntry(entry.path, entry.kind, note="protected")
    return ListingEntry(entry.path, entry.kind, note="ignored") if ignore.matches(name, folder=True) else entry


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _below(root: int, folder: _Folder, folders: dict[str, _Folder]) -> Iterator[_Folder]:
    for number, entry in enumerate(folder.names):
        if entry.kind != "directory" or entry.note:
            continue
        path = f"{entry.path}/"
        try:
            descriptor = _enter(root, path)
        except OSError:
            folder.names[number] = ListingEntry(entry.path, entry.kind, note="unreadable")
            continue
        try:
            ignore = folder.ignore.inside(descriptor, entry.path.rpartition("/")[2])
        finally:
            os.close(descriptor)
        folders[path] = _Folder(path, folder.depth + 1, ignore, [])
        yield folders[path]


def _enter(root: int, path: str) -> int:
    """Opens a folder below an open one name by name: a name replaced by a link is not followed."""
    descriptor = os.open(".", _FOLDER, dir_fd=root)
    for name in path.split("/"):
        if name:
            try:
                descriptor, outer = os.open(name, _FOLDER, dir_fd=descriptor), descriptor
            except OSError:
                os.close(descriptor)
                raise
            os.close(outer)
    return descriptor


def _in_order(folders: dict[str, _Folder], path: str) -> Iterator[ListingEntry]:
    for entry in folders[path].names:
        yield entry
        if entry.kind == "directory" and f"{entry.path}/" in folders:
            yield from _in_order(folders, f"{entry.path}/")
