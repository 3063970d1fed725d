"""Compares an overlay with the folders below it."""

import contextlib
import hashlib
import operator
import os
import stat
import struct
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.model import PLAIN_OVERLAY_PLACEMENT, Placement
from handrail.changes.overlay.walk import (
    DirEntry,
    OverlayEntry,
    open_overlay_file,
    open_overlay_folder,
    read_visible_xattrs,
)
from handrail.kernel.files import read_file_handle
from handrail.policy.names import find_protection
from handrail.protocol.changes import State
from handrail.workspace.file_state import FileContents, FileId, read_chunks, read_contents
from handrail.workspace.resolve import LIST_FOLDER, READ_FILE, closing_descriptor
from handrail.workspace.text import detect_start_encoding

_MAX_SINGLE_READ_BYTES = 1 << 18
"""Size up to which a file is read at once."""
_ORIGIN = "user.overlay.origin"
"""An attribute of entries that were copied up from below, and not made in the overlay."""
_ORIGIN_HEADER = struct.Struct("4xB16x")
"""The header of an origin mark. Its byte is the type of the file handle that follows."""
_INDEX = "index"
"""The folder of files with several names, in the work folder of overlayfs."""


class OverlayDifference(NamedTuple):
    path: str
    before: State | None
    after: State | None
    placement: Placement = PLAIN_OVERLAY_PLACEMENT
    binary: bool = False
    target: str | None = None
    """The new target of a link."""
    came_up: bool = False
    """Whether overlayfs copied it up from below, so that something was there when the command ran."""
    shared: bool = False
    """Whether the file itself stays, and changes under its other names too."""


class UnsupportedEntryError(Exception):
    """A path that cannot be committed. The message is the reason."""


class _UpperFile(NamedTuple):
    entry: DirEntry
    descriptor: int
    attributes: dict[str, bytes]
    came_up: bool

    @property
    def size(self) -> int:
        return self.entry.status.st_size


def compare_entry(entry: OverlayEntry, *, precise: bool) -> OverlayDifference | None:
    """Compares a path of an overlay with the one below. None if nothing changed.

    `precise`: the overlay tracks hard links, so a file that did not come up from below is another one.
    """
    upper, lower = entry.upper, entry.lower
    if lower is not None and not _is_supported(lower):
        raise UnsupportedEntryError(f"it was {_describe_kind(lower)} before, which stays as it is")
    if upper is None or not _is_supported(upper):
        return _compare_removed(entry.path, lower) if lower is not None else None
    if stat.S_ISREG(upper.status.st_mode):
        return _compare_file(entry, upper, precise=precise)
    return _compare_folder(entry, upper) if upper.is_folder else _compare_link(entry, upper)


def find_unsupported_reason(entry: OverlayEntry) -> str | None:
    """Why the new entry of a path cannot be committed, in words. None if it can."""
    if entry.upper is None or _is_supported(entry.upper):
        return None
    return f"it is {_describe_kind(entry.upper)}, and those are not kept"


def _compare_removed(path: str, lower: DirEntry) -> OverlayDifference:
    if not stat.S_ISREG(lower.status.st_mode):
        return OverlayDifference(path, _read_lower_state(lower), None)
    contents = _read_lower_contents(lower)
    return OverlayDifference(path, _build_file_state(lower, contents), None, binary=_is_binary(contents))


def _compare_file(entry: OverlayEntry, upper: DirEntry, *, precise: bool) -> OverlayDifference | None:
    with closing_descriptor(open_overlay_file(upper.name, upper.folder)) as descriptor:
        names = _list_xattrs(descriptor)
        file = _UpperFile(upper, descriptor, read_visible_xattrs(descriptor, names), _ORIGIN in names)
        if entry.lower is not None and stat.S_ISREG(entry.lower.status.st_mode):
            with closing_descriptor(_open_lower(entry.lower)) as old:
                return _compare_files(entry, file, entry.lower, old, precise=precise)
        contents = _read_contents(descriptor, file.size)
    return _build_difference(entry, file, _read_lower_state(entry.lower), contents)


def _compare_files(
    entry: OverlayEntry, file: _UpperFile, lower: DirEntry, old: int, *, precise: bool
) -> OverlayDifference | None:
    if file.size == lower.status.st_size and all(map(operator.eq, read_chunks(old), read_chunks(file.descriptor))):
        if file.entry.status.st_mode != lower.status.st_mode:
            contents = _read_contents(file.descriptor, file.size)
            return _build_difference(entry, file, _build_file_state(lower, contents), contents)
        if file.attributes != read_visible_xattrs(old, _list_xattrs(old)):
            raise UnsupportedEntryError("only its extended attributes changed, and changes to them alone are not kept")
        return None  # a new time alone is no change
    before, after = _read_contents(old, lower.status.st_size), _read_contents(file.descriptor, file.size)
    in_place = lower.status.st_nlink > 1 and not entry.made and _is_written_through(file, old, precise=precise)
    return _build_difference(entry, file, _build_file_state(lower, before), after, in_place=in_place)


def _is_written_through(file: _UpperFile, old: int, *, precise: bool) -> bool:
    """Whether a file that had several names below is still that file, and no other in its place.

    An overlay that tracks hard links has a mark that tells. Other overlays mark only files that had one name. In
    those, a file with several names is most likely new, so the other names below keep their bytes.
    """
    came_from = _is_origin(file.descriptor, old)
    return came_from is not False if precise else came_from is False and file.entry.status.st_nlink == 1


def _compare_folder(entry: OverlayEntry, upper: DirEntry) -> OverlayDifference | None:
    before, after = _read_lower_state(entry.lower), State(kind="folder", mode=stat.S_IMODE(upper.status.st_mode))
    if before == after:
        return None
    with open_overlay_folder(upper.name, upper.folder) as descriptor:
        names = _list_xattrs(descriptor)
        placement = _build_placement(upper, read_visible_xattrs(descriptor, names))
        return OverlayDifference(entry.path, before, after, placement, came_up=_ORIGIN in names)


def _compare_link(entry: OverlayEntry, upper: DirEntry) -> OverlayDifference | None:
    before, after = _read_lower_state(entry.lower), _build_link_state(upper)
    if before == after:
        return None
    target = os.readlink(upper.name, dir_fd=upper.folder)
    return OverlayDifference(entry.path, before, after, _build_placement(upper, {}), target=target)


def _build_difference(
    entry: OverlayEntry, file: _UpperFile, before: State | None, contents: FileContents, *, in_place: bool = False
) -> OverlayDifference:
    placement = _build_placement(file.entry, file.attributes, in_place=in_place)
    after = _build_file_state(file.entry, contents)
    return OverlayDifference(entry.path, before, after, placement, _is_binary(contents), None, file.came_up)


def _build_placement(upper: DirEntry, attributes: dict[str, bytes], *, in_place: bool = False) -> Placement:
    return Placement(in_place=in_place, mtime_ns=upper.status.st_mtime_ns, attributes=attributes)


def _read_lower_state(lower: DirEntry | None) -> State | None:
    if lower is None:
        return None
    if lower.is_folder:
        _check_readable(lower)
        return State(kind="folder", mode=stat.S_IMODE(lower.status.st_mode))
    if stat.S_ISLNK(lower.status.st_mode):
        return _build_link_state(lower)
    return _build_file_state(lower, _read_lower_contents(lower))


def _check_readable(folder: DirEntry) -> None:
    if folder.ours:
        return
    try:
        os.close(os.open(folder.name, LIST_FOLDER, dir_fd=folder.folder))
    except PermissionError:
        raise UnsupportedEntryError("it could not be read, so its change cannot be undone") from None


def _read_lower_contents(lower: DirEntry) -> FileContents:
    with closing_descriptor(_open_lower(lower)) as descriptor:
        return _read_contents(descriptor, lower.status.st_size)


def _open_lower(lower: DirEntry) -> int:
    try:
        if lower.ours:
            return open_overlay_file(lower.name, lower.folder)
        return os.open(lower.name, READ_FILE, dir_fd=lower.folder)
    except PermissionError:
        raise UnsupportedEntryError("it could not be read before, so its change cannot be undone") from None


def _read_contents(descriptor: int, size: int) -> FileContents:
    return read_contents(descriptor, size, _MAX_SINGLE_READ_BYTES)


def _build_file_state(entry: DirEntry, contents: FileContents) -> State:
    return State(kind="file", hash=contents.hash, size=contents.size, mode=stat.S_IMODE(entry.status.st_mode))


def _build_link_state(entry: DirEntry) -> State:
    target = os.fsencode(os.readlink(entry.name, dir_fd=entry.folder))
    return State(kind="link", hash=hashlib.sha256(target).hexdigest(), size=len(target))


def _is_binary(contents: FileContents) -> bool:
    return detect_start_encoding(contents.start) is None


def _is_supported(entry: DirEntry) -> bool:
    mode = entry.status.st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _describe_kind(entry: DirEntry) -> str:
    mode = entry.status.st_mode
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _is_origin(upper: int, lower: int) -> bool | None:
    """Whether an open file of an overlay was copied up from that open file below.

    None if the mark does not tell. Only overlays of root have marks that name the file.
    """
    try:
        mark = os.getxattr(upper, _ORIGIN)
    except OSError:
        return False
    handle = read_file_handle(lower) if len(mark) > _ORIGIN_HEADER.size else None
    if handle is None:
        return None
    (kind,) = _ORIGIN_HEADER.unpack_from(mark)
    return (kind, mark[_ORIGIN_HEADER.size :]) == handle


def _list_xattrs(descriptor: int) -> list[str]:
    """All attributes of a file. None if the file system has no attributes."""
    try:
        return os.listxattr(descriptor)
    except OSError:
        return []


class HardLinks:
    """The names of files in one overlay, and of the same paths below it."""

    def __init__(self) -> None:
        self._names: dict[FileId, list[str]] = {}
        """Names in the overlay of files with several names."""
        self._lower: dict[str, FileId] = {}
        """The file below each name, if it has several names below or in the overlay."""
        self._shared: set[str] = set()
        """Names of files that had several names below."""
        self._counts: dict[FileId, int] = {}
        """The number of names of files below."""

    def note(self, entry: OverlayEntry) -> None:
        """Notes an entry, whether it changed or not."""
        upper, lower = entry.upper, entry.lower
        if lower is not None and lower.status.st_nlink > 1:
            self._shared.add(entry.path)
        if upper is None or upper.is_folder:
            return
        if upper.status.st_nlink > 1:
            self._names.setdefault(_get_file_id(upper), []).append(entry.path)
        if lower is not None and (lower.status.st_nlink > 1 or upper.status.st_nlink > 1):
            self._lower[entry.path] = _get_file_id(lower)
            self._counts[_get_file_id(lower)] = lower.status.st_nlink

    def link(self, differences: list[OverlayDifference]) -> Iterator[OverlayDifference]:
        """The differences, placed so that names of one file become names of one file again."""
        first = {name: self._find_first(names) for names in self._names.values() if len(names) > 1 for name in names}
        split = self._find_split_files(differences)
        for one in differences:
            placement, to = one.placement, first.get(one.path)
            if to is not None and to != one.path and not (self._were_one_file(one.path, to) and _is_same_file(one)):
                # If only one of two names is protected, a later write to the other would change the protected file.
                force_copy = (find_protection(to) is None) != (find_protection(one.path) is None)
                linked_to = None if force_copy else os.fsencode(to)
                placement = replace(placement, linked_to=linked_to, force_copy=force_copy)
            if placement.in_place and self._lower.get(one.path) in split:
                placement = replace(placement, in_place=False)
            linked = one._replace(placement=placement)
            yield linked._replace(shared=one.path in self._shared and _is_same_file(linked))

    def has_nameless_change(self, work: str, differences: list[OverlayDifference]) -> bool:
        """Whether a file with several names was changed under a name that is gone by now.

        The other names of a real file would have changed too. The overlay has the new bytes only in its index.
        """
        removed = {one.before.hash for one in differences if one.before is not None and one.path in self._shared}
        return not {contents.hash for contents in _read_nameless(work)} <= removed

    def find_written_through(self, differences: list[OverlayDifference]) -> dict[FileId, tuple[OverlayDifference, int]]:
        """The files that stay and have names without a difference, which change too.

        Each has one of its differences, and its number of names.
        """
        same = [one for one in differences if one.placement.in_place or _is_mode_only(one)]
        files = {self._lower[one.path]: one for one in same if one.path in self._lower}
        known = Counter(self._lower.get(one.path) for one in differences)
        return {file: (one, self._counts[file]) for file, one in files.items() if self._counts[file] > known[file]}

    def _find_first(self, names: list[str]) -> str:
        """The name that the others are linked to: one that existed before, if there is one."""
        return next((name for name in names if name in self._lower), names[0])

    def _were_one_file(self, one: str, other: str) -> bool:
        file = self._lower.get(one)
        return file is not None and file == self._lower.get(other)

    def _find_split_files(self, differences: list[OverlayDifference]) -> set[FileId]:
        """Files whose names got different contents. Overlays that do not track hard links allow that.

        Each name then gets the content that the command saw under it.
        """
        contents: dict[FileId, set[str]] = {}
        for one in differences:
            file = self._lower.get(one.path)
            if file is not None and one.placement.in_place and one.after is not None:
                contents.setdefault(file, set()).add(one.after.hash)
        return {file for file, hashes in contents.items() if len(hashes) > 1}


def _is_same_file(one: OverlayDifference) -> bool:
    """Whether the file stays itself: it is written through, or only its mode changes."""
    has_same_bytes = one.before is not None and one.after is not None and one.before.hash == one.after.hash
    return bool(one.placement.in_place) or has_same_bytes


def _is_mode_only(one: OverlayDifference) -> bool:
    before, after = one.before, one.after
    return before is not None and after is not None and after.kind == "file" and before.hash == after.hash


def _get_file_id(entry: DirEntry) -> FileId:
    return entry.status.st_dev, entry.status.st_ino


def _read_nameless(work: str) -> Iterator[FileContents]:
    with contextlib.suppress(FileNotFoundError), open_overlay_folder(os.path.join(work, _INDEX)) as index:
        for name in os.listdir(index):
            status = os.stat(name, dir_fd=index, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                with closing_descriptor(open_overlay_file(name, index)) as file:
                    yield read_contents(file, status.st_size)
