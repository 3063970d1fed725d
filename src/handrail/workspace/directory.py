"""Lists folders through their descriptors, without following links."""

import heapq
import itertools
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from handrail.policy.names import find_protection
from handrail.protocol.decisions import FileKind
from handrail.workspace.file_state import FileId, find_kind
from handrail.workspace.ignore import IgnoreStack
from handrail.workspace.resolve import LIST_FOLDER, closing_descriptor, open_beneath

_T = TypeVar("_T")


class ListingEntry(msgspec.Struct, frozen=True):
    path: str
    kind: FileKind
    size: int | None = None
    note: str | None = None
    """Why a folder's entries are not listed."""


class FolderListing(msgspec.Struct, frozen=True):
    entries: tuple[ListingEntry, ...]
    total: int
    exact: bool
    """Whether `total` counts all entries. Otherwise there are more."""


class _ListedFolder(msgspec.Struct):
    path: str
    """Empty, or ends in a slash."""
    depth: int
    ignore: IgnoreStack
    entries: list[ListingEntry]


def list_tree(root: int, depth: int, limit: int, ignore: IgnoreStack) -> FolderListing:
    """Lists up to `limit` entries, upper levels first, so that a huge deep folder hides nothing beside it."""
    top = _ListedFolder("", 1, ignore, [])
    folders = {"": top}
    pending = deque([top])
    left, total, exact = limit, 0, True
    while pending:
        folder = pending.popleft()
        if left <= 0:
            exact = False
            break
        folder.entries, count = _list_folder(root, folder, left)
        left, total = left - len(folder.entries), total + count
        if folder.depth < depth:
            # A folder that is not shown is not entered, and its entries are not counted.
            exact = exact and count == len(folder.entries)
            pending.extend(_enter_subfolders(root, folder, folders))
    return FolderListing(tuple(_order_entries(folders, "")), total, exact)


def list_names(folder: int, most: int) -> tuple[list[str], int]:
    """The first printable names in an open folder, sorted, and the number of all of them."""
    with os.scandir(folder) as entries:
        return _take_first((entry.name for entry in entries if entry.name.isprintable()), most, str)


def list_files(folder: int, path: str, most: int, depth: int) -> tuple[str, ...]:
    """The first regular files below an open folder at `path`, upper levels first, relative to the folder.

    At most ten names are read for each file that is wanted, since a tree may hold nothing but folders.
    """
    files: list[str] = []
    pending, budget = deque([("", 1)]), 10 * most
    while pending and budget > 0 and len(files) < most:
        inner, level = pending.popleft()
        kinds = _list_kinds(folder, inner, most) if find_protection(f"{path}/{inner}") != "credential" else {}
        budget -= 1 + len(kinds)
        files += [f"{inner}{name}" for name, kind in kinds.items() if kind == "file"]
        if level < depth:
            pending += [(f"{inner}{name}/", level + 1) for name, kind in kinds.items() if kind == "directory"]
    return tuple(sorted(files[:most]))


def list_hard_links(root: str, wanted: Mapping[FileId, int]) -> Iterator[tuple[str, FileId]]:
    """Yields every path below a root of the wanted files, which are given with their link counts.

    The search ends as soon as all links are found.
    """
    left = Counter(wanted)
    inodes = {inode for _, inode in wanted}
    pending = [""]
    while pending and left:
        folder = pending.pop()
        for name, inode, is_folder in _list_inodes(os.path.join(root, folder)):
            path = f"{folder}/{name}" if folder else name
            if is_folder:
                pending.append(path)
            elif inode in inodes:
                file = _read_file_id(os.path.join(root, path))
                if file is not None and file in left:
                    yield path, file
                    left[file] -= 1
                    left += Counter()


def _list_folder(root: int, folder: _ListedFolder, limit: int) -> tuple[list[ListingEntry], int]:
    """The first entries of a folder, folders before others, and the number of all of them."""
    try:
        descriptor = _open_folder(root, folder.path)
    except OSError:
        return [], 0
    with closing_descriptor(descriptor), os.scandir(descriptor) as entries:
        listed = (_build_entry(entry, folder.path) for entry in entries)
        first, count = _take_first(listed, limit, lambda entry: (entry.kind != "directory", entry.path))
    return [_add_note(entry, folder.ignore) for entry in first], count


def _open_folder(root: int, path: str) -> int:
    return open_beneath(root, path.rstrip("/") or ".", LIST_FOLDER)


def _take_first(items: Iterable[_T], most: int, key: Callable[[_T], Any]) -> tuple[list[_T], int]:
    """The smallest items, sorted, and the number of all items."""
    counter = itertools.count()
    first = heapq.nsmallest(most, (item for item, _ in zip(items, counter, strict=False)), key)
    return first, next(counter)


def _build_entry(entry: os.DirEntry[str], folder: str) -> ListingEntry:
    path = f"{folder}{entry.name}"
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return ListingEntry(path, "other", note="unreadable")
    kind = find_kind(status.st_mode)
    return ListingEntry(path, kind, status.st_size if kind == "file" else None)


def _add_note(entry: ListingEntry, ignore: IgnoreStack) -> ListingEntry:
    """Says of a folder that is not entered why."""
    if entry.kind != "directory":
        return entry
    name = entry.path.rpartition("/")[2]
    if find_protection(name) == "credential":
        return ListingEntry(entry.path, entry.kind, note="protected")
    return ListingEntry(entry.path, entry.kind, note="ignored") if ignore.matches(name, folder=True) else entry


def _enter_subfolders(root: int, folder: _ListedFolder, folders: dict[str, _ListedFolder]) -> Iterator[_ListedFolder]:
    for number, entry in enumerate(folder.entries):
        if entry.kind != "directory" or entry.note:
            continue
        path = f"{entry.path}/"
        try:
            descriptor = _open_folder(root, path)
        except OSError:
            folder.entries[number] = ListingEntry(entry.path, entry.kind, note="unreadable")
            continue
        with closing_descriptor(descriptor):
            ignore = folder.ignore.enter(descriptor, entry.path.rpartition("/")[2])
        folders[path] = _ListedFolder(path, folder.depth + 1, ignore, [])
        yield folders[path]


def _order_entries(folders: dict[str, _ListedFolder], path: str) -> Iterator[ListingEntry]:
    for entry in folders[path].entries:
        yield entry
        if entry.kind == "directory" and f"{entry.path}/" in folders:
            yield from _order_entries(folders, f"{entry.path}/")


def _list_kinds(root: int, folder: str, most: int) -> dict[str, FileKind]:
    """The first printable names in a folder, each with its kind. Empty if the folder cannot be read."""
    try:
        descriptor = _open_folder(root, folder)
    except OSError:
        return {}
    with closing_descriptor(descriptor), os.scandir(descriptor) as entries:
        first, _ = _take_first((entry for entry in entries if entry.name.isprintable()), most, attrgetter("name"))
        return {entry.name: _build_entry(entry, "").kind for entry in first}


def _list_inodes(folder: str) -> list[tuple[str, int, bool]]:
    """Names, inodes, and whether each is a folder. Empty if the folder cannot be read."""
    try:
        descriptor = os.open(folder, LIST_FOLDER)
    except OSError:
        return []
    with closing_descriptor(descriptor), os.scandir(descriptor) as entries:
        return [(entry.name, entry.inode(), entry.is_dir(follow_symlinks=False)) for entry in entries]


def _read_file_id(path: str) -> FileId | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
