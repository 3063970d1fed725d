"""Walks an overlay beside the folders below it."""

import contextlib
import errno
import os
import stat
import struct
from collections.abc import Generator, Iterator
from typing import NamedTuple, Self

from handrail.kernel.files import read_file_handle
from handrail.sandbox.overlay.overlay import Overlay, OverlayMount
from handrail.workspace.resolve import LIST_FOLDER, READ_FILE
from handrail.workspace.workspace import Workspace

# § [changes.layered.marks] The marks that overlayfs leaves in an overlay, in the form that it has without root's
# § rights (`userxattr`).

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


# § [changes.layered.beneath] What an overlay lies on: a root, or a root with earlier overlays over it, as a command
# § saw them together.


class DirEntry(NamedTuple):
    """Where an entry is, and what it is. The descriptor is that of its folder, and open as long as that is walked."""

    folder: int
    name: str
    status: os.stat_result
    ours: bool = False
    """Whether it is in an overlay, and so ours to open."""

    @property
    def is_folder(self) -> bool:
        """Whether it is one: a link to one is not."""
        return stat.S_ISDIR(self.status.st_mode)


class LowerDir:
    """One folder of it. Of the folders that have a name, the latest says what it is."""

    def __init__(self, folders: tuple[int, ...], *, has_root: bool) -> None:
        """`folders`: open descriptors, the latest first; they are closed with it. `has_root`: the last one is the
        root's own, where nothing is a mark but a whiteout that is a device."""
        self._folders = folders
        self._layers = len(folders) - has_root

    def root_ctime(self) -> int:
        """When entries came or went here in the root itself; 0 where it has no such folder."""
        return os.fstat(self._folders[-1]).st_ctime_ns if self._layers < len(self._folders) else 0

    def find(self, name: str) -> DirEntry | None:
        """What has a name here."""
        return self._find(name, self._folders)

    def enter(self, name: str) -> "LowerDir | None":
        """The folder of a name; None where there is none."""
        with contextlib.ExitStack() as opened:
            entered: list[int] = []
            last = -1
            for number, folder in enumerate(self._folders):
                found = self._find(name, (folder,), number)
                if found is None and not _is_there(folder, name):
                    continue
                if found is None or not found.is_folder:
                    break
                entered.append(os.open(name, LIST_FOLDER, dir_fd=folder))
                opened.callback(os.close, entered[-1])
                last = number
                if number < self._layers and is_opaque(entered[-1]):
                    break
            opened.pop_all()
        return LowerDir(tuple(entered), has_root=last == self._layers) if entered else None

    def names(self) -> Iterator[str]:
        """The entries that are to be seen here."""
        if len(self._folders) == 1 and not self._layers:
            yield from os.listdir(self._folders[0])
            return
        every = {name for folder in self._folders for name in os.listdir(folder)}
        yield from (name for name in every if self.find(name) is not None)

    def close(self) -> None:
        """Gives the descriptors back."""
        for folder in self._folders:
            os.close(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self, name: str, folders: tuple[int, ...], start: int = 0) -> DirEntry | None:
        for number, folder in enumerate(folders, start):
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            ours = number < self._layers
            if (ours or stat.S_ISCHR(status.st_mode)) and is_whiteout(folder, name, status):
                return None
            return DirEntry(folder, name, status, ours)
        return None


def open_lower_dir(root: str, uppers: tuple[str, ...]) -> LowerDir:
    """What lies under an overlay, from its top. `uppers`: those of earlier overlays, the latest first."""
    with contextlib.ExitStack() as opened:
        folders: list[int] = []
        for path in (*uppers, root):
            folders.append(os.open(path, LIST_FOLDER))
            opened.callback(os.close, folders[-1])
        opened.pop_all()
    return LowerDir(tuple(folders), has_root=True)


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


# § [changes.layered.opening] Opens what a command left in an overlay: by descriptors and past no link. The overlay
# § is ours, so what a command closed to itself there (`chmod 000`) is opened to its owner while we look at it, and
# § then closed again: permissions in an overlay are part of what it says. Nothing beneath it is ever touched so.

_ENTERED = 0o500
_OWNERS = 0o700


@contextlib.contextmanager
def open_overlay_folder(name: str, parent: int | None = None) -> Generator[int]:
    """A folder of an overlay, whatever its permissions are."""
    try:
        descriptor = os.open(name, LIST_FOLDER, dir_fd=parent)
    except PermissionError:
        closed = _open_up(name, parent)
        descriptor = os.open(name, LIST_FOLDER, dir_fd=parent)
    else:
        closed = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if closed & _ENTERED != _ENTERED:
            os.fchmod(descriptor, closed | _OWNERS)
    try:
        yield descriptor
    finally:
        if closed & _ENTERED != _ENTERED:
            os.fchmod(descriptor, closed)
        os.close(descriptor)


def open_overlay_file(name: str, folder: int) -> int:
    """A file of an overlay for reading, whatever its permissions are."""
    try:
        return os.open(name, READ_FILE, dir_fd=folder)
    except PermissionError:
        closed = _open_up(name, folder)
        try:
            return os.open(name, READ_FILE, dir_fd=folder)
        finally:
            os.chmod(name, closed, dir_fd=folder)


@contextlib.contextmanager
def open_overlay_parent(top: str, path: str) -> Generator[tuple[int, str]]:
    """The folder that a path below an overlay's top is in, and its last name."""
    *folders, name = path.split("/")
    with contextlib.ExitStack() as held:
        inner = held.enter_context(open_overlay_folder(top))
        for folder in folders:
            inner = held.enter_context(open_overlay_folder(folder, inner))
        yield inner, name


def _open_up(name: str, folder: int | None) -> int:
    """Opens it to its owner; the permissions that it had. No link is refused for permissions, so it is none."""
    closed = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    os.chmod(name, closed | _OWNERS, dir_fd=folder)
    return closed


# § [changes.layered.walking] Walks through an overlay and what is beneath it, side by side.

MAX_OVERLAY_DEPTH = 100
"""Folders in folders that are walked: each holds descriptors open. Nobody makes deeper ones on purpose."""
SWAPPED_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ESTALE})
"""What the system says when something is another thing than it was a moment ago."""


class OverlayEntry(NamedTuple):
    """A path at which the overlay says something. Its descriptors are open only until the next one is asked for."""

    path: str
    """Below the root, and behind what the walk begins with."""
    upper: DirEntry | None
    """What the overlay has there; None where it took it away."""
    lower: DirEntry | None
    """What is beneath; None where nothing was."""
    made: bool = False
    """Whether it is known to be made here: it is in a folder that is new."""
    parent_ctime: int = 0
    """When entries came or went in the folder beneath, where it has none of this name; 0 where there is no folder."""


class OverlayWalk:
    """One walk through what lies over a root."""

    def __init__(self, over: OverlayMount, start: str = "") -> None:
        """`start`: what every path begins with."""
        self._over = over
        self._start = start
        self.unreadable: list[str] = []
        """Paths beneath that cannot be looked into."""
        self.swapped: list[str] = []
        """Paths beneath that others changed while they were looked at."""
        self.too_deep: list[str] = []

    def paths(self) -> Iterator[OverlayEntry]:
        """Every path that the overlay says something about, a folder before what is in it."""
        over = self._over
        with open_overlay_folder(over.upper) as upper, open_lower_dir(over.root, over.below) as below:
            yield from self._folder(upper, below, self._start, replaced=is_opaque(upper))

    def _folder(self, upper: int, below: LowerDir | None, at: str, *, replaced: bool) -> Iterator[OverlayEntry]:
        """`replaced`: the folder is another one than that beneath: what is only there is gone."""
        seen: set[str] = set()
        made = replaced or below is None
        with os.scandir(upper) as entries:
            found = sorted(entries, key=_name_of)
        for entry in found:
            name = entry.name
            now = DirEntry(upper, name, entry.stat(follow_symlinks=False), ours=True)
            before = below.find(name) if below is not None else None
            seen.add(name)
            if is_whiteout(upper, name, now.status):
                yield from self._gone(below, before, at + name)
                continue
            around = below.root_ctime() if below is not None and before is None else 0
            yield OverlayEntry(at + name, now, before, made, around)
            yield from self._inside(now, below if before is not None else None, before, at + name, made=made)
        if replaced and below is not None:
            for name in sorted(set(below.names()) - seen):
                yield from self._gone(below, below.find(name), at + name)

    def _inside(
        self, now: DirEntry, below: LowerDir | None, before: DirEntry | None, path: str, *, made: bool
    ) -> Iterator[OverlayEntry]:
        if now.is_folder:
            if self._is_too_deep(path):
                return
            inner = self._entered(below, now.name, path) if before is not None and before.is_folder else None
            try:
                with open_overlay_folder(now.name, now.folder) as upper:
                    yield from self._folder(upper, inner, f"{path}/", replaced=made or is_opaque(upper))
            finally:
                if inner is not None:
                    inner.close()
        elif before is not None and before.is_folder:
            yield from self._content_gone(below, now.name, path)

    def _gone(self, below: LowerDir | None, before: DirEntry | None, path: str) -> Iterator[OverlayEntry]:
        if before is not None:
            yield OverlayEntry(path, None, before)
            if before.is_folder:
                yield from self._content_gone(below, before.name, path)

    def _content_gone(self, below: LowerDir | None, name: str, path: str) -> Iterator[OverlayEntry]:
        inner = self._entered(below, name, path)
        if inner is not None:
            with inner:
                for each in sorted(inner.names()):
                    yield from self._gone(inner, inner.find(each), f"{path}/{each}")

    def _entered(self, below: LowerDir | None, name: str, path: str) -> LowerDir | None:
        try:
            return below.enter(name) if below is not None and not self._is_too_deep(path) else None
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


def _name_of(entry: "os.DirEntry[str]") -> str:
    return entry.name


# § [changes.layered.places] Where an overlay has a path.


def build_path_prefix(workspace: Workspace, root: str) -> str:
    """How paths in a root begin in steps: relative in the workspace, absolute elsewhere."""
    main = workspace.main.path
    if root == main:
        return ""
    return f"{root[len(_within(main)) :]}/" if is_ancestor(main, root) else _within(root)


def is_ancestor(outer: str, inner: str) -> bool:
    """Whether a folder lies in another one."""
    return inner != outer and inner.startswith(_within(outer))


def resolve_overlay_path(workspace: Workspace, path: bytes, overlay: Overlay) -> tuple[OverlayMount, str]:
    """What lies over the root that the path of a step is in, and the path below that root."""
    full = os.path.join(workspace.main.path, os.fsdecode(path))
    over = max((one for one in overlay.overlaid if full.startswith(_within(one.root))), key=lambda one: len(one.root))
    return over, full[len(_within(over.root)) :]


def _within(folder: str) -> str:
    return f"{folder.rstrip('/')}/"
