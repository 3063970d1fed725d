"""An overlay over the roots of a workspace."""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

import msgspec

from handrail.protocol.errors import ToolError
from handrail.protocol.wire import decode_msgpack
from handrail.sandbox.mounts import is_within
from handrail.sandbox.overlay.cleanup import Removal, remove_folder, remove_later
from handrail.store.state_dir import lock_folder

# § [sandbox.layer.clock] Tells what was changed before a moment from what was changed after it, by change times:
# § nobody can set those.

_SECOND = 1_000_000_000
_PAUSE_SECONDS = 0.0005
_MAX_PAUSES = 20_000
"""Ten seconds: there are file systems that count in two."""


def wait_for_fresh_ctime(folder: str) -> int:
    """A change time that nothing has yet, of a folder of ours. The clock of file systems stands still for milliseconds,
    and much longer on a machine that is busy; newer kernels move it on when somebody looks at a time. OSError if the
    file system does not renew change times at all."""
    latest = _touched(folder)  # nothing that was changed until now has a later one
    for _ in range(_MAX_PAUSES):
        if (now := _touched(folder)) != latest:
            return now
        time.sleep(_PAUSE_SECONDS)
    raise OSError(errno.EOPNOTSUPP, "the file system does not renew change times", folder)


def is_changed_since(change_time: int, tick: int) -> bool:
    """Whether something was changed at that tick or later; where a file system counts in seconds, it may have been."""
    return (change_time + _SECOND - 1 if change_time % _SECOND == 0 else change_time) >= tick


def _touched(folder: str) -> int:
    os.chmod(folder, 0o700)
    return os.stat(folder).st_ctime_ns


# § [sandbox.layer.layer] An overlay: a folder that takes in what a command changes, and lies over the roots while
# § it runs. It lies over the very paths of the roots, so that absolute paths stay true. The roots themselves are
# § only read.

TABLE = "table"
"""The file that says what is to be mounted."""
_PLAIN = re.compile(r"[A-Za-z0-9_./+@%-]+")
"""Paths of which no character means anything to overlayfs or to the program mount."""
_MIN_FREE_BYTES = 1 << 24
"""Bytes of a disk that the journal and what else is written meanwhile may well need."""
_HANDED_ON = ("system.posix_acl_", "user.")
"""Attributes of a root that its overlay has too."""


class OverlayMount(NamedTuple):
    """One root with what lies over it."""

    root: str
    """Absolute, without links."""
    upper: str
    """The folder that has what was changed, as overlayfs writes it."""
    work: str
    """For overlayfs alone."""
    below: tuple[str, ...] = ()
    """Uppers of earlier overlays that lie in between, the latest first."""


class Overlay:
    """The overlay of one command. Who has it removes it; its folder is locked as long as its process lives."""

    def __init__(
        self,
        folder: str,
        roots: tuple[str, ...],
        below: "tuple[Overlay, ...]" = (),
        *,
        in_user_namespace: bool | None = None,
    ) -> None:
        """Makes it in a new folder; FileExistsError if that exists. `below`: the overlays that it lies on, the latest
        first; they must stay till it ends. `in_user_namespace`: whether it is mounted in one. Root needs none."""
        self.folder = folder
        self._removal: Removal | None = None
        self.in_user_namespace = os.geteuid() != 0 if in_user_namespace is None else in_user_namespace
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
        self._descriptor = lock_folder(folder)
        if self._descriptor < 0:
            raise FileExistsError(f"{folder} was taken for one that nobody has")
        try:
            self.overlaid = tuple(
                self._overlay(number, root, below) for number, root in enumerate(drop_nested_roots(roots))
            )
            self._write_table()
            self.started = wait_for_fresh_ctime(folder)
            """When it was made: whatever changes beneath it from here on has this change time or a later one, and
            whatever changed before has an earlier one."""
        except BaseException:
            self.remove()
            raise

    @classmethod
    def reopen(
        cls, folder: str, overlaid: tuple[OverlayMount, ...], started: int, *, in_user_namespace: bool
    ) -> Self | None:
        """One that was made before, and let go of; None where it is gone, or somebody else has it."""
        descriptor = lock_folder(folder)
        if descriptor < 0:
            return None
        overlay = cls.__new__(cls)
        overlay.folder, overlay.overlaid, overlay.started, overlay.in_user_namespace = (
            folder,
            overlaid,
            started,
            in_user_namespace,
        )
        overlay._descriptor, overlay._removal = descriptor, None  # noqa: SLF001  its own
        return overlay

    def release(self) -> None:
        """It stays, and is nobody's: whoever it was given to sees to it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def tracks_hard_links(self) -> bool:
        """Whether overlayfs keeps names of one file together: then a name that it took apart was taken apart."""
        return not self.in_user_namespace

    def remove(self) -> None:
        """Throws away what was changed; can be repeated. What cannot be removed now is left to who sweeps."""
        self.wait()
        self._remove()

    def remove_later(self) -> None:
        """The same without waiting for it. Python does not end before."""
        if self._removal is None and self._descriptor >= 0:
            self._removal = remove_later(self._remove)

    def wait(self) -> None:
        """Waits for a removal that goes on."""
        if self._removal is not None:
            self._removal.wait()

    def _remove(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            with contextlib.suppress(OSError):
                remove_folder(self.folder)
        finally:
            os.close(descriptor)

    def _overlay(self, number: int, root: str, below: "tuple[Overlay, ...]") -> OverlayMount:
        upper, work = (os.path.join(self.folder, f"{name}-{number}") for name in ("upper", "work"))
        uppers = tuple(over.upper for layer in below for over in layer.overlaid if over.root == root)
        os.mkdir(upper)
        self._dress(upper, root)
        os.mkdir(work, 0o700)
        return OverlayMount(root, upper, work, uppers)

    def _dress(self, upper: str, root: str) -> None:
        """What lies on top is what is seen of a root itself, and what new files in it go by: owner, group, mode, and
        lists of who may do what."""
        status = os.stat(root)
        if not self.in_user_namespace:
            os.chown(upper, status.st_uid, status.st_gid)
        os.chmod(upper, stat.S_IMODE(status.st_mode))
        with contextlib.suppress(OSError):  # not every file system has attributes
            for name in os.listxattr(root):
                if name.startswith(_HANDED_ON) and not name.startswith("user.overlay."):
                    os.setxattr(upper, name, os.getxattr(root, name))

    def _named(self, number: int, lowers: tuple[str, ...]) -> Iterator[str]:
        """The folders below, each by a name that can stand in a table of mounts: where its path cannot, a link's."""
        for place, path in enumerate(lowers):
            if _PLAIN.fullmatch(path):
                yield path
            else:
                link = f"lower-{number}-{place}"
                os.symlink(path, os.path.join(self.folder, link))
                yield link

    def _write_table(self) -> None:
        """As in /etc/fstab. No other mount comes from what this one comes from: so none is taken for it."""
        name = f"handrail-{os.path.basename(self.folder)}"
        with open(os.path.join(self.folder, TABLE), "x", encoding="ascii") as table:
            table.writelines(f"{name} {line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for number, over in enumerate(self.overlaid):
            lowers = tuple(self._named(number, (*over.below, over.root)))
            options = f"lowerdir={':'.join(lowers)},upperdir=upper-{number},workdir=work-{number},userxattr,volatile"
            yield f"{lowers[-1]} overlay {options}{',index=on' if self.tracks_hard_links else ''} 0 0"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_room_scarce():
            self.remove()
        else:
            self.remove_later()

    def _is_room_scarce(self) -> bool:
        """Whether the disk is about full, maybe of this overlay: then what comes of the command needs its room."""
        try:
            disk = os.statvfs(self.folder)
        except OSError:
            return False
        return disk.f_blocks > 0 and disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES


def drop_nested_roots(roots: Iterable[str]) -> tuple[str, ...]:
    """Without those that lie in another one, in the same order: what lies over that lies over them too."""
    listed = tuple(dict.fromkeys(roots))
    return tuple(root for root in listed if not any(root != other and is_within(root, other) for other in listed))


# § [sandbox.layer.mounting] Puts an overlay over the roots, in a mount namespace of its own, and starts the rest of
# § the sandbox in it.

NOT_MOUNTED = "handrail: the overlay is not mounted"
"""What is printed last where the program was not begun."""
_NOT_BEGUN = 125
_SHELL = "/bin/sh"
"""Not bash: it would begin with what BASH_ENV names, which is for the command's own shell, and takes longer."""
_FOLDERS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin")
"""Those of the system alone: what is found elsewhere may be anybody's."""


class Programs(NamedTuple):
    """What mounts an overlay."""

    unshare: str
    mount: str


def find_programs() -> Programs | None:
    """The system's own; None where one is missing."""
    unshare, mount = _found("unshare"), _found("mount")
    return Programs(unshare, mount) if unshare and mount and os.access(_SHELL, os.X_OK) else None


def require_programs() -> Programs:
    """The same where they must be there; a ToolError where they are not."""
    programs = find_programs()
    if programs is None:
        text = "The programs unshare and mount are not there any more, so no overlay can lie over the workspace."
        raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Nothing was run. `handrail doctor` tells the person more.")
    return programs


def wrap_in_overlay(argv: tuple[str, ...], overlay: Overlay, programs: Programs) -> tuple[str, ...]:
    """What to start in the place of a program, so that the overlay lies over the roots for it and for nobody else.

    All roots are mounted by one process, by a table: each would cost as much as a third of a sandbox. The shell opens
    nothing, so nothing of it is left open to the program.
    """
    # As root in a user namespace: the program mount asks for no more.
    namespaces = ("--map-root-user", "--mount") if overlay.in_user_namespace else ("--mount",)
    # Once overlayfs is there, it has made a folder in each of those that it works in.
    there = " && ".join(f"[ -d work-{number}/work ]" for number in range(len(overlay.overlaid)))
    mounted = f'cd "$1" && {programs.mount} -n -i -a -T ./{TABLE} && {there} && cd / && shift && exec "$@"'
    script = f'{mounted}; echo "{NOT_MOUNTED}" >&2; exit {_NOT_BEGUN}'
    return (programs.unshare, *namespaces, "--", _SHELL, "-c", script, "handrail", overlay.folder, *argv)


def _found(name: str) -> str | None:
    places = (os.path.join(folder, name) for folder in _FOLDERS)
    return next((place for place in places if os.access(place, os.X_OK)), None)


# § [sandbox.layer.owner] Overlays of commands that go on after their calls: what they belong to is a folder then,
# § and no process. Whoever sweeps leaves them alone as long as that folder is there; whoever has to do with the
# § command finds them again.

_OWNER = "owner"


class _Noted(msgspec.Struct, frozen=True):
    """One root, as it is written down: a path is bytes, which need not be text."""

    root: bytes
    upper: bytes
    work: bytes
    below: tuple[bytes, ...]


class _Note(msgspec.Struct, frozen=True):
    owner: bytes
    started: int
    in_user_namespace: bool = msgspec.field(name="own_users")
    overlaid: tuple[_Noted, ...]


def assign_owner(overlay: Overlay, owner: str) -> None:
    """Notes the folder that the overlay belongs to. It stays ours until it is let go of."""
    note = _Note(os.fsencode(owner), overlay.started, overlay.in_user_namespace, tuple(map(_written, overlay.overlaid)))
    with open(os.path.join(overlay.folder, _OWNER), "xb") as file:
        file.write(msgspec.msgpack.encode(note))


def is_owned(folder: str) -> bool:
    """Whether what an overlay belongs to is there."""
    note = _noted(folder)
    return note is not None and os.path.isdir(note.owner)


def reclaim(folder: str) -> Overlay | None:
    """The overlay in a folder, which is ours from here on; None where it is gone, or somebody else has it."""
    note = _noted(folder)
    if note is None:
        return None
    return Overlay.reopen(
        folder, tuple(map(_read, note.overlaid)), note.started, in_user_namespace=note.in_user_namespace
    )


def _written(over: OverlayMount) -> _Noted:
    below = tuple(map(os.fsencode, over.below))
    return _Noted(os.fsencode(over.root), os.fsencode(over.upper), os.fsencode(over.work), below)


def _read(noted: _Noted) -> OverlayMount:
    below = tuple(map(os.fsdecode, noted.below))
    return OverlayMount(os.fsdecode(noted.root), os.fsdecode(noted.upper), os.fsdecode(noted.work), below)


def _noted(folder: str) -> _Note | None:
    try:
        with open(os.path.join(folder, _OWNER), "rb") as file:
            return decode_msgpack(file.read(), _Note)
    except (OSError, msgspec.DecodeError):
        return None


# § [sandbox.layer.hints] What a command's output shows of its overlay: things that fail under one and not without,
# § in words that help.

_ACROSS = ("invalid cross-device link", "cross-device link not permitted")
"""As the system and node.js say it. The bare EXDEV may be a line of source."""
_NOT_OURS = ("value too large for defined data type",)
_MAX_READ_CHARS = 200_000
"""Characters of the end of an output: what went wrong is said there."""


def list_overlay_hints(printed: str) -> tuple[str, ...]:
    """One sentence for each thing; nothing where the output shows none."""
    end = printed[-_MAX_READ_CHARS:].lower()
    found: list[str] = []
    if any(sign in end for sign in _ACROSS):
        found.append(_FOLDER_MOVED)
    if any(sign in end for sign in _NOT_OURS):
        found.append(_OF_ANOTHER)
    return tuple(found)


_FOLDER_MOVED = (
    "A folder that was there before cannot be renamed in one piece in the overlay that the command ran in"
    " (Invalid cross-device link): move it with `mv`, which copies it, or copy it and remove the old one."
)
_OF_ANOTHER = (
    "A file or folder that belongs to another user or group cannot be changed in the overlay that the command ran in"
    " (Value too large for defined data type): copy it, change the copy, and put that in its place."
)
