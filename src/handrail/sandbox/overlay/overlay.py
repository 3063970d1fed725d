"""An overlay: a folder that takes the changes of a command while the roots stay as they are."""

import contextlib
import errno
import os
import re
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

import msgspec

from handrail.kernel.files import lock_folder
from handrail.kernel.folder_removal import OPEN_FOLDER, empty_folder
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import decode_msgpack
from handrail.workspace.roots import is_inside

OPAQUE = "user.overlay.opaque"
"""The mark of overlayfs on a folder that hides the one below."""
NOT_MOUNTED = "handrail: the overlay is not mounted"
"""The last line of output if the program did not start."""
_EXIT_NOT_MOUNTED = 125
_TABLE = "table"
_OWNER = "owner"
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+@%-]+")
"""Paths without special characters of overlayfs or the program mount."""
_MIN_FREE_BYTES = 1 << 24
"""Room for the journal and other files that are written at the same time."""
_COPIED_XATTRS = ("system.posix_acl_", "user.")
_SECOND = 1_000_000_000
_PAUSE_SECONDS = 0.0005
_MAX_PAUSES = 20_000
"""Ten seconds: some file systems count in steps of two."""
_SHELL = "/bin/sh"
"""Not bash, which would run the script of BASH_ENV and starts more slowly."""
_FOLDERS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin")
"""Folders of the system. Programs elsewhere are not trusted."""
_MAX_HINT_CHARS = 200_000
_HINTS = (
    # The messages of the system and of node.js. The bare EXDEV may be a line of source.
    (
        ("invalid cross-device link", "cross-device link not permitted"),
        "An overlay cannot rename a folder that existed before"
        " (Invalid cross-device link). Move it with `mv`, which copies it, or copy it and remove the old one.",
    ),
    (
        ("value too large for defined data type",),
        "The overlay cannot change a file or folder that belongs to another user or group (Value too large for "
        "defined data type). Copy it, change the copy, and replace the original.",
    ),
)


class OverlayMount(NamedTuple):
    root: str
    """Absolute, without links."""
    upper: str
    """The folder with the changes, in the format of overlayfs."""
    work: str
    """For overlayfs alone."""
    below: tuple[str, ...] = ()
    """The upper folders of earlier overlays in between, the latest first."""


class Overlay:
    """The overlay of one command, at the very paths of the roots. Its folder is locked while its process lives."""

    def __init__(
        self,
        folder: str,
        roots: tuple[str, ...],
        below: "tuple[Overlay, ...]" = (),
        *,
        in_user_namespace: bool | None = None,
    ) -> None:
        """Make it in a new folder. FileExistsError if the folder exists.

        `below` are the overlays that it lies on, the latest first. They must outlive it. `in_user_namespace`: whether
        it is mounted in a user namespace. Root needs none.
        """
        self.folder = folder
        self._removal: threading.Thread | None = None
        self.in_user_namespace = os.geteuid() != 0 if in_user_namespace is None else in_user_namespace
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
        self._descriptor = lock_folder(folder)
        if self._descriptor < 0:
            raise FileExistsError(f"{folder} is in use")
        try:
            self.overlaid = tuple(
                self._make_folders(number, root, below) for number, root in enumerate(drop_nested_roots(roots))
            )
            self._write_table()
            self.started = wait_for_fresh_ctime(folder)
            """The time of its start. Later changes in the roots have this change time or a later one."""
        except BaseException:
            self.remove()
            raise

    @classmethod
    def reclaim(cls, folder: str) -> Self | None:
        """The released overlay of a folder, locked by this process. None if it is gone, or another process has it."""
        note = _read_note(folder)
        descriptor = lock_folder(folder) if note is not None else -1
        if note is None or descriptor < 0:
            return None
        overlay = cls.__new__(cls)
        overlay.folder, overlay.started, overlay.in_user_namespace = folder, note.started, note.in_user_namespace
        overlay.overlaid = tuple(mount.decode() for mount in note.overlaid)
        overlay._descriptor, overlay._removal = descriptor, None  # noqa: SLF001  its own
        return overlay

    def assign_owner(self, owner: str) -> None:
        mounts = tuple(map(_MountNote.encode, self.overlaid))
        note = _OwnerNote(os.fsencode(owner), self.started, self.in_user_namespace, mounts)
        with open(os.path.join(self.folder, _OWNER), "xb") as file:
            file.write(msgspec.msgpack.encode(note))

    @property
    def tracks_hard_links(self) -> bool:
        """Whether overlayfs keeps the names of one file together."""
        return not self.in_user_namespace

    def release(self) -> None:
        """Keep the folder and give up its lock."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def remove(self) -> None:
        """Remove it now. The next sweep removes what is left."""
        self.wait()
        self._remove()

    def remove_later(self) -> None:
        """Remove it in the background. Python does not end before that. A forked process leaves it to its parent."""
        if self._removal is None and self._descriptor >= 0:
            removal = threading.Thread(target=self._remove, name="handrail-layers", daemon=False)
            try:
                removal.start()
                self._removal = removal
            except RuntimeError:  # no room for a thread, or Python is about to end
                self._remove()

    def wait(self) -> None:
        if self._removal is not None:
            self._removal.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_disk_full():
            self.remove()
        else:
            self.remove_later()

    def _remove(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            with contextlib.suppress(OSError):
                remove_folder(self.folder)
        finally:
            os.close(descriptor)

    def _is_disk_full(self) -> bool:
        try:
            disk = os.statvfs(self.folder)
        except OSError:
            return False
        return disk.f_blocks > 0 and disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES

    def _make_folders(self, number: int, root: str, below: "tuple[Overlay, ...]") -> OverlayMount:
        upper, work = (os.path.join(self.folder, f"{name}-{number}") for name in ("upper", "work"))
        uppers = tuple(mount.upper for overlay in below for mount in overlay.overlaid if mount.root == root)
        os.mkdir(upper)
        self._copy_root_metadata(root, upper)
        os.mkdir(work, 0o700)
        return OverlayMount(root, upper, work, uppers)

    def _copy_root_metadata(self, root: str, upper: str) -> None:
        """Commands see the metadata of the upper folder as that of the root."""
        status = os.stat(root)
        if not self.in_user_namespace:
            os.chown(upper, status.st_uid, status.st_gid)
        os.chmod(upper, stat.S_IMODE(status.st_mode))
        with contextlib.suppress(OSError):  # not every file system has attributes
            for name in os.listxattr(root):
                if name.startswith(_COPIED_XATTRS) and not name.startswith("user.overlay."):
                    os.setxattr(upper, name, os.getxattr(root, name))

    def _write_table(self) -> None:
        """The mounts in the format of /etc/fstab, with a source that no other mount has."""
        source = f"handrail-{os.path.basename(self.folder)}"
        with open(os.path.join(self.folder, _TABLE), "x", encoding="ascii") as table:
            for number, mount in enumerate(self.overlaid):
                lowers = tuple(self._spell_lowers(number, (*mount.below, mount.root)))
                options = f"lowerdir={':'.join(lowers)},upperdir=upper-{number},workdir=work-{number}"
                index = ",index=on" if self.tracks_hard_links else ""
                table.write(f"{source} {lowers[-1]} overlay {options},userxattr,volatile{index} 0 0\n")

    def _spell_lowers(self, number: int, lowers: tuple[str, ...]) -> Iterator[str]:
        """The lower folders, by a link if the table cannot hold a path."""
        for position, path in enumerate(lowers):
            if _PLAIN_PATH.fullmatch(path):
                yield path
            else:
                link = f"lower-{number}-{position}"
                os.symlink(path, os.path.join(self.folder, link))
                yield link


def remove_folder(folder: str) -> None:
    """Remove a folder with everything in it. No process may be at work in it. OSError if that fails."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(folder, OPEN_FOLDER)
        try:
            empty_folder(descriptor)
        finally:
            os.close(descriptor)
        os.rmdir(folder)


def drop_nested_roots(roots: Iterable[str]) -> tuple[str, ...]:
    """The roots that lie in no other root, in the same order."""
    listed = tuple(dict.fromkeys(roots))
    return tuple(root for root in listed if not any(root != other and is_inside(root, other) for other in listed))


# Change times tell whether a file changed before or after a moment: no program can set them.


def wait_for_fresh_ctime(folder: str) -> int:
    """A change time that no file has yet.

    The clock of a file system stands still for milliseconds. OSError if it does not renew change times at all.
    """
    latest = _touch(folder)
    for _ in range(_MAX_PAUSES):
        if (now := _touch(folder)) != latest:
            return now
        time.sleep(_PAUSE_SECONDS)
    raise OSError(errno.EOPNOTSUPP, "the file system does not renew change times", folder)


def is_changed_since(change_time: int, start: int) -> bool:
    """Whether a file may have changed at a start or later. A file system may count in whole seconds."""
    return (change_time + _SECOND - 1 if change_time % _SECOND == 0 else change_time) >= start


def _touch(folder: str) -> int:
    os.chmod(folder, 0o700)
    return os.stat(folder).st_ctime_ns


def is_opaque(folder: str | int) -> bool:
    """Whether a folder of an overlay, or its descriptor, hides the folder below."""
    try:
        return os.getxattr(folder, OPAQUE) == b"y"
    except OSError:
        return False


def find_programs() -> tuple[str, str] | None:
    """The programs unshare and mount of the system. None if one is missing."""
    unshare, mount = _find_program("unshare"), _find_program("mount")
    return (unshare, mount) if unshare and mount and os.access(_SHELL, os.X_OK) else None


def wrap_in_overlay(argv: tuple[str, ...], overlay: Overlay) -> tuple[str, ...]:
    """A command line that starts a program under the overlay, in its own mount namespace.

    One process mounts all roots: each further process would cost a third of a sandbox start.
    """
    programs = find_programs()
    if programs is None:
        text = "The programs unshare and mount are missing now, so overlays are not possible."
        raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Nothing was run. `handrail doctor` tells the user more.")
    unshare, mount = programs
    # As root in a user namespace, which the program mount asks for.
    namespaces = ("--map-root-user", "--mount") if overlay.in_user_namespace else ("--mount",)
    # A mounted overlayfs has made a folder in each work folder.
    is_mounted = " && ".join(f"[ -d work-{number}/work ]" for number in range(len(overlay.overlaid)))
    mounted = f'cd "$1" && {mount} -n -i -a -T ./{_TABLE} && {is_mounted} && cd / && shift && exec "$@"'
    script = f'{mounted}; echo "{NOT_MOUNTED}" >&2; exit {_EXIT_NOT_MOUNTED}'
    return (unshare, *namespaces, "--", _SHELL, "-c", script, "handrail", overlay.folder, *argv)


def list_overlay_hints(printed: str) -> tuple[str, ...]:
    """Advice for errors that only occur in an overlay, from the end of the output."""
    end = printed[-_MAX_HINT_CHARS:].lower()
    return tuple(hint for messages, hint in _HINTS if any(message in end for message in messages))


def _find_program(name: str) -> str | None:
    paths = (os.path.join(folder, name) for folder in _FOLDERS)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


# The overlay of a background process belongs to the folder of its process session. A sweep keeps it while that folder
# exists.


class _MountNote(msgspec.Struct, frozen=True):
    """An OverlayMount on disk. Paths are bytes, since they need not be text."""

    root: bytes
    upper: bytes
    work: bytes
    below: tuple[bytes, ...]

    @staticmethod
    def encode(mount: OverlayMount) -> "_MountNote":
        root, upper, work = map(os.fsencode, mount[:3])
        return _MountNote(root, upper, work, tuple(map(os.fsencode, mount.below)))

    def decode(self) -> OverlayMount:
        root, upper, work = map(os.fsdecode, (self.root, self.upper, self.work))
        return OverlayMount(root, upper, work, tuple(map(os.fsdecode, self.below)))


class _OwnerNote(msgspec.Struct, frozen=True):
    owner: bytes
    started: int
    in_user_namespace: bool = msgspec.field(name="own_users")
    overlaid: tuple[_MountNote, ...]


def is_owned(folder: str) -> bool:
    note = _read_note(folder)
    return note is not None and os.path.isdir(note.owner)


def _read_note(folder: str) -> _OwnerNote | None:
    try:
        with open(os.path.join(folder, _OWNER), "rb") as file:
            return decode_msgpack(file.read(), _OwnerNote)
    except (OSError, msgspec.DecodeError):
        return None
