"""Compares a path of an overlay with the one below."""

import hashlib
import operator
import os
import stat
from typing import NamedTuple

from handrail.changes.model import PLAIN_OVERLAY_PLACEMENT, OverlayPlacement
from handrail.changes.overlay.walk import (
    DirEntry,
    OverlayEntry,
    has_origin,
    is_origin,
    list_xattrs,
    open_overlay_file,
    open_overlay_folder,
    read_visible_xattrs,
)
from handrail.protocol.changes import State
from handrail.workspace.file_state import FileContents, read_chunks, read_contents
from handrail.workspace.resolve import LIST_FOLDER, READ_FILE
from handrail.workspace.text import detect_start_encoding

_MAX_SINGLE_READ_BYTES = 1 << 18
"""A file of at most so many bytes is read in one piece."""


class OverlayDifference(NamedTuple):
    """A path that is not what it was."""

    path: str
    before: State | None
    after: State | None
    placement: OverlayPlacement = PLAIN_OVERLAY_PLACEMENT
    binary: bool = False
    target: str | None = None
    """Where a link leads now."""
    came_up: bool = False
    """Whether it was taken up from beneath: then something was there when the command ran."""
    shared: bool = False
    """Whether the file stays itself and has other names, which get the change too."""


class UnsupportedEntryError(Exception):
    """What the message says about the path cannot be committed."""


class _Upper(NamedTuple):
    """What an overlay has at a path, apart from bytes."""

    attributes: dict[str, bytes]
    came_up: bool


def compare_entry(met: OverlayEntry, *, precise: bool) -> OverlayDifference | None:
    """None where nothing is different. `precise`: a file that did not come up from beneath is surely another one."""
    if met.lower is not None and not _is_kept(met.lower):
        raise UnsupportedEntryError(f"it was {_named(met.lower)} before, which stays as it is")
    if met.upper is None or not _is_kept(met.upper):
        return _gone(met.path, met.lower) if met.lower is not None else None
    if stat.S_ISREG(met.upper.status.st_mode):
        return _file(met, met.upper, precise=precise)
    return _folder(met, met.upper) if met.upper.is_folder else _link(met, met.upper)


def find_unsupported_reason(met: OverlayEntry) -> str | None:
    """Why what the overlay has there cannot be committed, in words; None where it can."""
    return None if met.upper is None or _is_kept(met.upper) else f"it is {_named(met.upper)}, and those are not kept"


def _gone(path: str, before: DirEntry) -> OverlayDifference:
    if not stat.S_ISREG(before.status.st_mode):
        return OverlayDifference(path, _state(before), None)
    found = _contents_beneath(before)
    return OverlayDifference(path, _file_state(before, found), None, binary=_is_binary(found))


def _file(met: OverlayEntry, now: DirEntry, *, precise: bool) -> OverlayDifference | None:
    descriptor = open_overlay_file(now.name, now.folder)
    try:
        names = list_xattrs(descriptor)
        upper = _Upper(read_visible_xattrs(descriptor, names), has_origin(names))
        if met.lower is not None and stat.S_ISREG(met.lower.status.st_mode):
            return _file_over_file(met, now, met.lower, descriptor, upper, precise=precise)
        found = _read_contents(descriptor, now.status.st_size)
    finally:
        os.close(descriptor)
    return _new(met, now, _state(met.lower), found, upper)


def _file_over_file(
    met: OverlayEntry, now: DirEntry, before: DirEntry, new: int, upper: _Upper, *, precise: bool
) -> OverlayDifference | None:
    size = now.status.st_size
    old = _open_beneath(before)
    try:
        if size == before.status.st_size:
            both = _compare_contents(old, new, size)
            if both is None:
                return _same_bytes(met, now, before, new, upper, old)
        else:
            both = _read_contents(old, before.status.st_size), _read_contents(new, size)
        in_place = before.status.st_nlink > 1 and not met.made and _is_written_through(now, new, old, precise=precise)
    finally:
        os.close(old)
    return _new(met, now, _file_state(before, both[0]), both[1], upper, in_place=in_place)


def _compare_contents(old: int, new: int, size: int) -> tuple[FileContents, FileContents] | None:
    """The contents of two files of one size; None if they are the same."""
    if size > _MAX_SINGLE_READ_BYTES and all(map(operator.eq, read_chunks(old), read_chunks(new))):
        return None
    before, after = (_read_contents(file, size) for file in (old, new))
    return None if before.hash == after.hash else (before, after)


def _read_contents(descriptor: int, size: int) -> FileContents:
    return read_contents(descriptor, size, _MAX_SINGLE_READ_BYTES)


def _is_written_through(now: DirEntry, new: int, old: int, *, precise: bool) -> bool:
    """Whether a file that had several names beneath is still that one, and not another in its place. Where an overlay
    keeps the names of a file together, its marks say so. Elsewhere it marks what had one name, and only that; and what
    has several names in it is most likely new: the other names beneath then keep what they have."""
    came_from = is_origin(new, old)
    return came_from is not False if precise else came_from is False and now.status.st_nlink == 1


def _same_bytes(
    met: OverlayEntry, now: DirEntry, before: DirEntry, new: int, upper: _Upper, old: int
) -> OverlayDifference | None:
    """Touched is not changed; but the permissions may be."""
    if now.status.st_mode != before.status.st_mode:
        found = _read_contents(new, now.status.st_size)
        return _new(met, now, _file_state(before, found), found, upper)
    if upper.attributes != read_visible_xattrs(old, list_xattrs(old)):
        raise UnsupportedEntryError("only its extended attributes are others, and those alone are not kept")
    return None


def _new(
    met: OverlayEntry,
    now: DirEntry,
    before: State | None,
    found: FileContents,
    upper: _Upper,
    *,
    in_place: bool = False,
) -> OverlayDifference:
    placement = OverlayPlacement(in_place=in_place, mtime_ns=now.status.st_mtime_ns, attributes=upper.attributes)
    return OverlayDifference(
        met.path, before, _file_state(now, found), placement, _is_binary(found), None, upper.came_up
    )


def _folder(met: OverlayEntry, now: DirEntry) -> OverlayDifference | None:
    after = State(kind="folder", mode=stat.S_IMODE(now.status.st_mode))
    before = _state(met.lower)
    if before == after:
        return None
    with open_overlay_folder(now.name, now.folder) as descriptor:
        names = list_xattrs(descriptor)
        placement = OverlayPlacement(mtime_ns=now.status.st_mtime_ns, attributes=read_visible_xattrs(descriptor, names))
        return OverlayDifference(met.path, before, after, placement, came_up=has_origin(names))


def _link(met: OverlayEntry, now: DirEntry) -> OverlayDifference | None:
    before, after = _state(met.lower), _link_state(now)
    if before == after:
        return None
    placement = OverlayPlacement(mtime_ns=now.status.st_mtime_ns)
    return OverlayDifference(met.path, before, after, placement, target=os.readlink(now.name, dir_fd=now.folder))


def _state(place: DirEntry | None) -> State | None:
    """What was beneath, whatever it was."""
    if place is None:
        return None
    if place.is_folder:
        _check_folder(place)
        return State(kind="folder", mode=stat.S_IMODE(place.status.st_mode))
    if stat.S_ISLNK(place.status.st_mode):
        return _link_state(place)
    return _file_state(place, _contents_beneath(place))


def _check_folder(place: DirEntry) -> None:
    """A folder that cannot be looked into cannot be brought back."""
    if place.ours:
        return
    try:
        os.close(os.open(place.name, LIST_FOLDER, dir_fd=place.folder))
    except PermissionError:
        raise UnsupportedEntryError("it could not be looked into, so that its change cannot be taken back") from None


def _contents_beneath(place: DirEntry) -> FileContents:
    descriptor = _open_beneath(place)
    try:
        return _read_contents(descriptor, place.status.st_size)
    finally:
        os.close(descriptor)


def _open_beneath(place: DirEntry) -> int:
    try:
        return (
            open_overlay_file(place.name, place.folder)
            if place.ours
            else os.open(place.name, READ_FILE, dir_fd=place.folder)
        )
    except PermissionError:
        raise UnsupportedEntryError("it could not be read before, so that its change cannot be taken back") from None


def _file_state(place: DirEntry, found: FileContents) -> State:
    return State(kind="file", hash=found.hash, size=found.size, mode=stat.S_IMODE(place.status.st_mode))


def _link_state(place: DirEntry) -> State:
    target = os.fsencode(os.readlink(place.name, dir_fd=place.folder))
    return State(kind="link", hash=hashlib.sha256(target).hexdigest(), size=len(target))


def _is_binary(found: FileContents) -> bool:
    return detect_start_encoding(found.start) is None


def _is_kept(place: DirEntry) -> bool:
    mode = place.status.st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _named(place: DirEntry) -> str:
    mode = place.status.st_mode
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
