"""Entries of a folder."""

import heapq
import os
import stat
from collections import deque
from collections.abc import Iterator

import msgspec

from handrail.policy.names import find_protection
from handrail.protocol.decisions import FileKind
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.ignore import IgnoreStack
from handrail.workspace.workspace import Workspace

# § [workspace.listing] Lists a folder, some levels deep, without following links and without holding more than
# § asked for.

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


# § [workspace.glimpse] Small looks into a workspace, for who needs no tool: a file that may only be so large, the
# § names in a folder.


def read_small_file(workspace: Workspace, path: str, most: int) -> bytes:
    """All of a regular file; ToolError where there is none, or a larger one. A pipe or a device is not waited for."""
    with workspace.open_file(path) as opened:
        if opened.status.st_size > most:
            raise ToolError("LIMIT_EXCEEDED", f"{clip_path(path)} has more than {most} bytes.")
        try:
            data = b""
            while len(data) <= most and (piece := os.read(opened.descriptor, most + 1 - len(data))):
                data += piece
        except OSError as error:
            raise to_tool_error(error, path) from None
    if len(data) > most:
        raise ToolError("LIMIT_EXCEEDED", f"{clip_path(path)} has more than {most} bytes.")
    return data


def list_folder_names(workspace: Workspace, path: str, most: int) -> tuple[tuple[str, ...], int]:
    """The first names in a folder, in their order, and how many it has; names that are no text are left out."""
    count = 0
    with workspace.open_folder(path) as opened:
        try:
            with os.scandir(opened.descriptor) as found:

                def names() -> Iterator[str]:
                    nonlocal count
                    for entry in found:
                        if entry.name.isprintable():
                            count += 1
                            yield entry.name

                first = heapq.nsmallest(most, names())
        except OSError as error:
            raise to_tool_error(error, path) from None
    return tuple(first), count


def list_files_below(workspace: Workspace, path: str, most: int, depth: int) -> tuple[str, ...]:
    """The first regular files below a folder, upper levels first, relative to it; links are not followed. At most ten
    names are looked at for each file that is wanted: a tree may be all folders."""
    found: list[str] = []
    waiting, looks = deque([("", 1)]), 10 * most
    while waiting and looks > 0 and len(found) < most:
        folder, level = waiting.popleft()
        looks -= 1
        try:
            names, _ = list_folder_names(workspace, f"{path}/{folder}" if folder else path, most)
        except ToolError:
            continue
        looks -= len(names)
        for name in names:
            below = f"{folder}/{name}" if folder else name
            kind = _read_kind(workspace, f"{path}/{below}")
            if kind == "file":
                found.append(below)
            elif kind == "directory" and level < depth:
                waiting.append((below, level + 1))
    return tuple(sorted(found[:most]))


def _read_kind(workspace: Workspace, path: str) -> str:
    """Of the name itself: where a link leads is another file's business."""
    try:
        return workspace.fact_for_command(path, "delete").kind
    except ToolError:
        return "missing"
