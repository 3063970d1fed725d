"""Lists a folder, some levels deep, without following links and without holding more than asked for."""

import heapq
import os
import stat
from collections import deque
from collections.abc import Iterator

import msgspec

from handrail.protocol.decision import FileKind
from handrail.workspace.ignore import Ignore

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(msgspec.Struct, frozen=True):
    """One name in a listing."""

    path: str
    kind: FileKind
    size: int | None = None
    note: str | None = None
    """Why nothing below it is shown, or where a link leads."""


class Listing(msgspec.Struct, frozen=True):
    """Entries in the order they are shown, and how many there were where all were counted."""

    entries: tuple[Entry, ...]
    total: int
    exact: bool


class _Folder(msgspec.Struct):
    path: str
    depth: int
    ignore: Ignore
    names: list[Entry]


def listing(root: int, depth: int, limit: int, ignore: Ignore) -> Listing:
    """Upper levels first, so that a huge folder deep down never hides what is beside it."""
    top = _Folder("", 1, ignore.inside(root, ""), [])
    folders = {"": top}
    waiting = deque([top])
    left, total, exact = limit, 0, True
    while waiting:
        folder = waiting.popleft()
        if left <= 0:
            exact = False
            break
        found, count = _names(root, folder, left)
        folder.names = found
        left, total = left - len(found), total + count
        exact = exact and count == len(found)
        if folder.depth < depth:
            waiting.extend(_below(root, folder, folders))
    return Listing(tuple(_in_order(folders, "")), total, exact)


def _names(root: int, folder: _Folder, limit: int) -> tuple[list[Entry], int]:
    count = 0

    def entries(descriptor: int) -> Iterator[Entry]:
        nonlocal count
        with os.scandir(descriptor) as found:
            for item in found:
                count += 1
                yield _entry(item, folder)

    try:
        descriptor = _enter(root, folder.path)
    except OSError:
        return [], 0
    try:
        return heapq.nsmallest(
            limit, entries(descriptor), key=lambda entry: (entry.kind != "directory", entry.path)
        ), count
    finally:
        os.close(descriptor)


def _entry(item: os.DirEntry[str], folder: _Folder) -> Entry:
    path = f"{folder.path}{item.name}"
    try:
        status = item.stat(follow_symlinks=False)
    except OSError:
        return Entry(path, "other", note="unreadable")
    kind = _kind(status.st_mode)
    if kind == "directory" and folder.ignore.matches(item.name, folder=True):
        return Entry(path, kind, note="ignored")
    return Entry(path, kind, status.st_size if kind == "file" else None)


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _below(root: int, folder: _Folder, folders: dict[str, _Folder]) -> Iterator[_Folder]:
    for entry in folder.names:
        if entry.kind != "directory" or entry.note:
            continue
        path = f"{entry.path}/"
        try:
            descriptor = _enter(root, path)
        except OSError:
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


def _in_order(folders: dict[str, _Folder], path: str) -> Iterator[Entry]:
    for entry in folders[path].names:
        yield entry
        if entry.kind == "directory" and f"{entry.path}/" in folders:
            yield from _in_order(folders, f"{entry.path}/")
