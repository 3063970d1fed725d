"""The marks that overlayfs leaves in an overlay, in the form that it has without root's rights (`userxattr`)."""

import os
import stat
import struct

from handrail.kernel.files import read_file_handle

_OWN = "user."
_MARK = "user.overlay."
_ESCAPED = "user.overlay.overlay."
"""How a mark is spelled that is no mark, but an attribute that a command itself gave to a file."""
_HEAD = struct.Struct("4xB16x")
"""What a mark of an origin begins with: the kind of the handle that follows, and more that says nothing here."""
_OPAQUE, _ORIGIN, _WHITEOUT = f"{_MARK}opaque", f"{_MARK}origin", f"{_MARK}whiteout"


def is_whiteout(folder: int, name: str, status: os.stat_result) -> bool:
    """Whether an entry only says that what is beneath it is gone: a device that there is none of, or an empty file with
    a mark."""
    if stat.S_ISCHR(status.st_mode):
        return status.st_rdev == 0
    if status.st_size or not stat.S_ISREG(status.st_mode):
        return False
    try:
        os.getxattr(f"/proc/self/fd/{folder}/{name}", _WHITEOUT, follow_symlinks=False)
    except OSError:
        return False
    return True


def is_opaque(folder: int) -> bool:
    """Whether a folder hides everything that is beneath it."""
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False


def has_origin(names: list[str]) -> bool:
    """Whether a file or folder with these attributes came up from beneath, rather than being made in the overlay."""
    return _ORIGIN in names


def is_origin(upper: int, beneath: int) -> bool | None:
    """Whether a file of an overlay, both open, came up from that very file; None where the mark does not say it: only
    root's overlays have marks that name the file."""
    try:
        mark = os.getxattr(upper, _ORIGIN)
    except OSError:
        return False
    handle = read_file_handle(beneath) if len(mark) > _HEAD.size else None
    if handle is None:
        return None
    (kind,) = _HEAD.unpack_from(mark)
    return (kind, mark[_HEAD.size :]) == handle


def list_xattrs(descriptor: int) -> list[str]:
    """All attributes of a file; none where the file system has none."""
    try:
        return os.listxattr(descriptor)
    except OSError:
        return []


def read_visible_xattrs(descriptor: int, names: list[str]) -> dict[str, bytes]:
    """The attributes that are people's own, as a command sees them: without marks."""
    found: dict[str, bytes] = {}
    for name in names:
        if name.startswith(_OWN) and (not name.startswith(_MARK) or name.startswith(_ESCAPED)):
            shown = _MARK + name.removeprefix(_ESCAPED) if name.startswith(_ESCAPED) else name
            found[shown] = os.getxattr(descriptor, name)
    return found


def escape_xattr_name(name: str) -> str:
    """How an attribute of a command's own is spelled in an overlay, so that it is no mark."""
    return _ESCAPED + name.removeprefix(_MARK) if name.startswith(_MARK) else name
