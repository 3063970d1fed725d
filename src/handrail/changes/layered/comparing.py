"""Compares one path in a layer with what is beneath it: what it was, what it is now, and how it is to be brought."""

import hashlib
import os
import stat
from typing import NamedTuple

from handrail.changes.layered.beneath import Place
from handrail.changes.layered.contents import Contents, changed_contents, contents_of
from handrail.changes.layered.marks import attribute_names, has_origin, is_origin, own_attributes
from handrail.changes.layered.opening import FILE, FOLDER, open_file, opened_folder
from handrail.changes.layered.trial import PLAIN, Manner
from handrail.changes.layered.walking import Met
from handrail.protocol.change import State
from handrail.workspace.text import encoding_of_start


class Difference(NamedTuple):
    """A path that is not what it was."""

    path: str
    before: State | None
    after: State | None
    manner: Manner = PLAIN
    binary: bool = False
    target: str | None = None
    """Where a link leads now."""
    came_up: bool = False
    """Whether it was taken up from beneath: then something was there when the command ran."""
    shared: bool = False
    """Whether the file stays itself and has other names, which get the change too."""


class UnkeptError(Exception):
    """What the message says about the path cannot be kept."""


class _Upper(NamedTuple):
    """What a layer has at a path, apart from bytes."""

    attributes: dict[str, bytes]
    came_up: bool


def compare(met: Met, *, precise: bool) -> Difference | None:
    """None where nothing is different. `precise`: a file that did not come up from beneath is surely another one."""
    if met.before is not None and not _is_kept(met.before):
        raise UnkeptError(f"it was {_named(met.before)} before, which stays as it is")
    if met.now is None or not _is_kept(met.now):
        return _gone(met.path, met.before) if met.before is not None else None
    if stat.S_ISREG(met.now.status.st_mode):
        return _file(met, met.now, precise=precise)
    return _folder(met, met.now) if met.now.is_folder else _link(met, met.now)


def why_unkept(met: Met) -> str | None:
    """Why what the layer has there cannot be kept, in words; None where it can."""
    return None if met.now is None or _is_kept(met.now) else f"it is {_named(met.now)}, and those are not kept"


def _gone(path: str, before: Place) -> Difference:
    if not stat.S_ISREG(before.status.st_mode):
        return Difference(path, _state(before), None)
    found = _contents_beneath(before)
    return Difference(path, _file_state(before, found), None, binary=_is_binary(found))


def _file(met: Met, now: Place, *, precise: bool) -> Difference | None:
    descriptor = open_file(now.name, now.folder)
    try:
        names = attribute_names(descriptor)
        upper = _Upper(own_attributes(descriptor, names), has_origin(names))
        if met.before is not None and stat.S_ISREG(met.before.status.st_mode):
            return _file_over_file(met, now, met.before, descriptor, upper, precise=precise)
        found = contents_of(descriptor, now.status.st_size)
    finally:
        os.close(descriptor)
    return _new(met, now, _state(met.before), found, upper)


def _file_over_file(
    met: Met, now: Place, before: Place, new: int, upper: _Upper, *, precise: bool
) -> Difference | None:
    size = now.status.st_size
    old = _open_beneath(before)
    try:
        if size == before.status.st_size:
            both = changed_contents(old, new, size)
            if both is None:
                return _same_bytes(met, now, before, new, upper, old)
        else:
            both = contents_of(old, before.status.st_size), contents_of(new, size)
        in_place = before.status.st_nlink > 1 and not met.made and _is_written_through(now, new, old, precise=precise)
    finally:
        os.close(old)
    return _new(met, now, _file_state(before, both[0]), both[1], upper, in_place=in_place)


def _is_written_through(now: Place, new: int, old: int, *, precise: bool) -> bool:
    """Whether a file that had several names beneath is still that one, and not another in its place. Where a layer
    keeps the names of a file together, its marks say so. Elsewhere it marks what had one name, and only that; and what
    has several names in it is most likely new: the other names beneath then keep what they have."""
    came_from = is_origin(new, old)
    return came_from is not False if precise else came_from is False and now.status.st_nlink == 1


def _same_bytes(met: Met, now: Place, before: Place, new: int, upper: _Upper, old: int) -> Difference | None:
    """Touched is not changed; but the permissions may be."""
    if now.status.st_mode != before.status.st_mode:
        os.lseek(new, 0, os.SEEK_SET)
        found = contents_of(new, now.status.st_size)
        return _new(met, now, _file_state(before, found), found, upper)
    if upper.attributes != own_attributes(old, attribute_names(old)):
        raise UnkeptError("only its extended attributes are others, and those alone are not kept")
    return None


def _new(
    met: Met, now: Place, before: State | None, found: Contents, upper: _Upper, *, in_place: bool = False
) -> Difference:
    manner = Manner(in_place=in_place, mtime_ns=now.status.st_mtime_ns, attributes=upper.attributes)
    return Difference(met.path, before, _file_state(now, found), manner, _is_binary(found), None, upper.came_up)


def _folder(met: Met, now: Place) -> Difference | None:
    after = State(kind="folder", mode=stat.S_IMODE(now.status.st_mode))
    before = _state(met.before)
    if before == after:
        return None
    with opened_folder(now.name, now.folder) as descriptor:
        names = attribute_names(descriptor)
        manner = Manner(mtime_ns=now.status.st_mtime_ns, attributes=own_attributes(descriptor, names))
        return Difference(met.path, before, after, manner, came_up=has_origin(names))


def _link(met: Met, now: Place) -> Difference | None:
    before, after = _state(met.before), _link_state(now)
    if before == after:
        return None
    manner = Manner(mtime_ns=now.status.st_mtime_ns)
    return Difference(met.path, before, after, manner, target=os.readlink(now.name, dir_fd=now.folder))


def _state(place: Place | None) -> State | None:
    """What was beneath, whatever it was."""
    if place is None:
        return None
    if place.is_folder:
        _check_folder(place)
        return State(kind="folder", mode=stat.S_IMODE(place.status.st_mode))
    if stat.S_ISLNK(place.status.st_mode):
        return _link_state(place)
    return _file_state(place, _contents_beneath(place))


def _check_folder(place: Place) -> None:
    """A folder that cannot be looked into cannot be brought back."""
    if place.ours:
        return
    try:
        os.close(os.open(place.name, FOLDER, dir_fd=place.folder))
    except PermissionError:
        raise UnkeptError("it could not be looked into, so that its change cannot be taken back") from None


def _contents_beneath(place: Place) -> Contents:
    descriptor = _open_beneath(place)
    try:
        return contents_of(descriptor, place.status.st_size)
    finally:
        os.close(descriptor)


def _open_beneath(place: Place) -> int:
    try:
        return open_file(place.name, place.folder) if place.ours else os.open(place.name, FILE, dir_fd=place.folder)
    except PermissionError:
        raise UnkeptError("it could not be read before, so that its change cannot be taken back") from None


def _file_state(place: Place, found: Contents) -> State:
    return State(kind="file", hash=found.hash, size=found.size, mode=stat.S_IMODE(place.status.st_mode))


def _link_state(place: Place) -> State:
    target = os.fsencode(os.readlink(place.name, dir_fd=place.folder))
    return State(kind="link", hash=hashlib.sha256(target).hexdigest(), size=len(target))


def _is_binary(found: Contents) -> bool:
    return encoding_of_start(found.start) is None


def _is_kept(place: Place) -> bool:
    mode = place.status.st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _named(place: Place) -> str:
    mode = place.status.st_mode
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
