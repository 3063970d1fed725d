"""Walks an overlay side by side with the folders below it."""

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Iterator
from operator import attrgetter
from typing import NamedTuple, Self

from handrail.sandbox.overlay.overlay import Overlay, OverlayMount, is_opaque
from handrail.workspace.resolve import LIST_FOLDER, READ_FILE
from handrail.workspace.roots import is_inside
from handrail.workspace.workspace import Workspace

MAX_OVERLAY_DEPTH = 100
"""Depth up to which folders are walked. Each holds descriptors open."""
SWAPPED_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ESTALE})
"""Errors of an entry that was replaced a moment ago."""

# Marks of overlayfs, as it writes them without root's rights (`userxattr`).
_MARK = "user.overlay."
_ESCAPED_MARK = "user.overlay.overlay."
"""Starts an attribute that a command gave to a file and that looks like a mark."""
_WHITEOUT = f"{_MARK}whiteout"

_READ_MODE = 0o500
_OWNER_MODE = 0o700


class DirEntry(NamedTuple):
    """An entry of a folder. The folder is open until the walk goes on."""

    folder: int
    name: str
    status: os.stat_result
    ours: bool = False
    """Whether it is in an overlay, so that we may change its mode."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


class OverlayEntry(NamedTuple):
    """A path that the overlay changes or hides."""

    path: str
    """Below the root, after the start of the walk."""
    upper: DirEntry | None
    """None if the overlay removes it."""
    lower: DirEntry | None
    made: bool = False
    """Whether it is in a new folder, so that it is certainly new."""
    parent_ctime: int = 0
    """The change time of the folder below, if that has no such entry. 0 if there is no folder."""


class OverlayWalk:
    def __init__(self, mount: OverlayMount, start: str = "") -> None:
        """`start`: begins every path."""
        self._mount = mount
        self._start = start
        self.unreadable: list[str] = []
        """Folders below the overlay that cannot be read."""
        self.swapped: list[str] = []
        """Folders below the overlay that others replaced during the walk."""
        self.too_deep: list[str] = []

    def paths(self) -> Iterator[OverlayEntry]:
        """Yields the entries of the overlay, a folder before its entries."""
        mount = self._mount
        with open_overlay_folder(mount.upper) as upper, open_lower_dir(mount.root, mount.below) as lower:
            yield from self._walk_folder(upper, lower, self._start, replaced=is_opaque(upper))

    def _walk_folder(self, upper: int, lower: "LowerDir | None", at: str, *, replaced: bool) -> Iterator[OverlayEntry]:
        """`replaced`: the folder is another one than that below, whose other entries are gone."""
        names: set[str] = set()
        made = replaced or lower is None
        with os.scandir(upper) as entries:
            found = sorted(entries, key=attrgetter("name"))
        for entry in found:
            name = entry.name
            names.add(name)
            now = DirEntry(upper, name, entry.stat(follow_symlinks=False), ours=True)
            before = lower.find(name) if lower is not None else None
            if _is_whiteout(upper, name, now.status):
                yield from self._walk_removed(lower, before, at + name)
                continue
            parent_ctime = lower.root_ctime() if lower is not None and before is None else 0
            yield OverlayEntry(at + name, now, before, made, parent_ctime)
            yield from self._walk_inside(now, lower if before is not None else None, before, at + name, made=made)
        if replaced and lower is not None:
            for name in sorted(set(lower.names()) - names):
                yield from self._walk_removed(lower, lower.find(name), at + name)

    def _walk_inside(
        self, now: DirEntry, lower: "LowerDir | None", before: DirEntry | None, path: str, *, made: bool
    ) -> Iterator[OverlayEntry]:
        if now.is_folder:
            if self._is_too_deep(path):
                return
            inner = self._enter(lower, now.name, path) if before is not None and before.is_folder else None
            try:
                with open_overlay_folder(now.name, now.folder) as upper:
                    yield from self._walk_folder(upper, inner, f"{path}/", replaced=made or is_opaque(upper))
            finally:
                if inner is not None:
                    inner.close()
        elif before is not None and before.is_folder:
            yield from self._walk_removed_folder(lower, now.name, path)

    def _walk_removed(self, lower: "LowerDir | None", before: DirEntry | None, path: str) -> Iterator[OverlayEntry]:
        if before is not None:
            yield OverlayEntry(path, None, before)
            if before.is_folder:
                yield from self._walk_removed_folder(lower, before.name, path)

    def _walk_removed_folder(self, lower: "LowerDir | None", name: str, path: str) -> Iterator[OverlayEntry]:
        inner = self._enter(lower, name, path)
        if inner is not None:
            with inner:
                for each in sorted(inner.names()):
                    yield from self._walk_removed(inner, inner.find(each), f"{path}/{each}")

    def _enter(self, lower: "LowerDir | None", name: str, path: str) -> "LowerDir | None":
        try:
            return lower.enter(name) if lower is not None and not self._is_too_deep(path) else None
        except OSError as error:
            if error.errno not in {errno.EACCES, *SWAPPED_ERRNOS}:
                raise
            (self.unreadable if error.errno == errno.EACCES else self.swapped).append(path)
            return None

    def _is_too_deep(self, path: str) -> bool:
        if path.count("/") - self._start.count("/") < MAX_OVERLAY_DEPTH:
            return False
        if path not in self.too_deep:
            self.too_deep.append(path)
        return True


class LowerDir:
    """A folder below an overlay: that of the root, with those of earlier overlays on it."""

    def __init__(self, folders: tuple[int, ...], *, has_root: bool) -> None:
        """`folders`: open descriptors, the latest overlay first. They are closed with it.

        `has_root`: the last one is the folder of the root itself, where only a device can be a whiteout.
        """
        self._folders = folders
        self._overlays = len(folders) - has_root

    def root_ctime(self) -> int:
        """The change time of the folder of the root. 0 if there is none."""
        return os.fstat(self._folders[-1]).st_ctime_ns if self._overlays < len(self._folders) else 0

    def find(self, name: str) -> DirEntry | None:
        """The entry in the latest folder that has the name."""
        for number, folder in enumerate(self._folders):
            if (status := _read_status(folder, name)) is not None:
                return self._build_entry(number, name, status)
        return None

    def enter(self, name: str) -> "LowerDir | None":
        """The folder of a name. None if it is no folder."""
        with contextlib.ExitStack() as opened:
            entered: list[int] = []
            last = -1
            for number, folder in enumerate(self._folders):
                status = _read_status(folder, name)
                if status is None:
                    continue
                entry = self._build_entry(number, name, status)
                if entry is None or not entry.is_folder:
                    break
                entered.append(os.open(name, LIST_FOLDER, dir_fd=folder))
                opened.callback(os.close, entered[-1])
                last = number
                if number < self._overlays and is_opaque(entered[-1]):
                    break
            opened.pop_all()
        return LowerDir(tuple(entered), has_root=last == self._overlays) if entered else None

    def names(self) -> Iterator[str]:
        if len(self._folders) == 1 and not self._overlays:
            yield from os.listdir(self._folders[0])
            return
        every = {name for folder in self._folders for name in os.listdir(folder)}
        yield from (name for name in every if self.find(name) is not None)

    def close(self) -> None:
        for folder in self._folders:
            os.close(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build_entry(self, number: int, name: str, status: os.stat_result) -> DirEntry | None:
        """The entry of one of the folders. None if it is a whiteout."""
        folder, ours = self._folders[number], number < self._overlays
        if (ours or stat.S_ISCHR(status.st_mode)) and _is_whiteout(folder, name, status):
            return None
        return DirEntry(folder, name, status, ours)


def open_lower_dir(root: str, uppers: tuple[str, ...]) -> LowerDir:
    """The top folder below an overlay. `uppers`: those of earlier overlays, the latest first."""
    with contextlib.ExitStack() as opened:
        folders: list[int] = []
        for path in (*uppers, root):
            folders.append(os.open(path, LIST_FOLDER))
            opened.callback(os.close, folders[-1])
        opened.pop_all()
    return LowerDir(tuple(folders), has_root=True)


def _read_status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


# Opening files of an overlay. A command may have locked them (`chmod 000`). The overlay is ours, so they are unlocked
# while we read them, and locked again: modes in an overlay are part of its changes. Files below it are never touched.


@contextlib.contextmanager
def open_overlay_folder(name: str, parent: int | None = None) -> Generator[int]:
    """Opens a folder of an overlay, whatever its mode."""
    try:
        descriptor = os.open(name, LIST_FOLDER, dir_fd=parent)
    except PermissionError:
        mode = _unlock(name, parent)
        descriptor = os.open(name, LIST_FOLDER, dir_fd=parent)
    else:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & _READ_MODE != _READ_MODE:
            os.fchmod(descriptor, mode | _OWNER_MODE)
    try:
        yield descriptor
    finally:
        if mode & _READ_MODE != _READ_MODE:
            os.fchmod(descriptor, mode)
        os.close(descriptor)


def open_overlay_file(name: str, folder: int) -> int:
    """Opens a file of an overlay for reading, whatever its mode."""
    try:
        return os.open(name, READ_FILE, dir_fd=folder)
    except PermissionError:
        mode = _unlock(name, folder)
        try:
            return os.open(name, READ_FILE, dir_fd=folder)
        finally:
            os.chmod(name, mode, dir_fd=folder)


@contextlib.contextmanager
def open_overlay_parent(top: str, path: str) -> Generator[tuple[int, str]]:
    """The folder of a path below the top of an overlay, and its name there."""
    *folders, name = path.split("/")
    with contextlib.ExitStack() as opened:
        inner = opened.enter_context(open_overlay_folder(top))
        for folder in folders:
            inner = opened.enter_context(open_overlay_folder(folder, inner))
        yield inner, name


def _unlock(name: str, folder: int | None) -> int:
    """Unlocks an entry for its owner, and returns its mode. A link has no such mode, so it is none."""
    mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    os.chmod(name, mode | _OWNER_MODE, dir_fd=folder)
    return mode


def _is_whiteout(folder: int, name: str, status: os.stat_result) -> bool:
    """Whether an entry hides the one below: a device with number 0, or an empty file with a mark."""
    if stat.S_ISCHR(status.st_mode):
        return status.st_rdev == 0
    if status.st_size or not stat.S_ISREG(status.st_mode):
        return False
    try:
        os.getxattr(f"/proc/self/fd/{folder}/{name}", _WHITEOUT, follow_symlinks=False)
    except OSError:
        return False
    return True


def read_visible_xattrs(descriptor: int, names: list[str]) -> dict[str, bytes]:
    """The attributes of the user namespace as a command sees them, without marks."""
    visible: dict[str, bytes] = {}
    for name in names:
        if name.startswith(_ESCAPED_MARK):
            visible[_MARK + name.removeprefix(_ESCAPED_MARK)] = os.getxattr(descriptor, name)
        elif name.startswith("user.") and not name.startswith(_MARK):
            visible[name] = os.getxattr(descriptor, name)
    return visible


def escape_xattr_name(name: str) -> str:
    """The name in an overlay of an attribute that a command sees."""
    return _ESCAPED_MARK + name.removeprefix(_MARK) if name.startswith(_MARK) else name


def resolve_overlay_path(workspace: Workspace, path: bytes, overlay: Overlay) -> tuple[OverlayMount, str]:
    """The mount over the root of a step's path, and the path below that root."""
    full = os.path.join(workspace.main.path, os.fsdecode(path))
    mounts = (mount for mount in overlay.overlaid if is_inside(full, mount.root))
    mount = max(mounts, key=lambda mount: len(mount.root))
    return mount, os.path.relpath(full, mount.root)
