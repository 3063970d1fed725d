"""An overlay: a folder that takes in what a command changes, and lies over the roots while it runs.

It lies over the very paths of the roots, so that absolute paths stay true. The roots themselves are only read.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

from handrail.sandbox.layer.clock import wait_for_fresh_ctime
from handrail.sandbox.layer.removal import remove_folder
from handrail.sandbox.layer.sweeper import Removal, remove_later
from handrail.sandbox.view.mounts import is_within
from handrail.store.state_dir import lock_folder

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
