"""A layer: a folder that takes in what a command changes, and lies over the roots while it runs.

It lies over the very paths of the roots, so that absolute paths stay true. The roots themselves are only read.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

from handrail.sandbox.layer.clock import tick_of
from handrail.sandbox.layer.removal import remove_folder
from handrail.sandbox.layer.sweeper import Removal, remove_later
from handrail.sandbox.view.mounts import within
from handrail.store.locked_folder import locked

TABLE = "table"
"""The file that says what is to be mounted."""
_PLAIN = re.compile(r"[A-Za-z0-9_./+@%-]+")
"""Paths of which no character means anything to overlayfs or to the program mount."""
_SCARCE = 1 << 24
"""Bytes of a disk that the journal and what else is written meanwhile may well need."""
_HANDED_ON = ("system.posix_acl_", "user.")
"""Attributes of a root that its layer has too."""


class Overlaid(NamedTuple):
    """One root with what lies over it."""

    root: str
    """Absolute, without links."""
    upper: str
    """The folder that has what was changed, as overlayfs writes it."""
    work: str
    """For overlayfs alone."""
    below: tuple[str, ...] = ()
    """Uppers of earlier layers that lie in between, the latest first."""


class Layer:
    """The layer of one command. Who has it removes it; its folder is locked as long as its process lives."""

    def __init__(
        self,
        folder: str,
        roots: tuple[str, ...],
        below: "tuple[Layer, ...]" = (),
        *,
        own_users: bool | None = None,
    ) -> None:
        """Makes it in a new folder; FileExistsError where that is another's. `below`: layers that it lies on, the
        latest first; they must stay till it ends. `own_users`: whether it is mounted in a user namespace; only root
        can do without, and does, unless told otherwise."""
        self.folder = folder
        self._removal: Removal | None = None
        self.own_users = os.geteuid() != 0 if own_users is None else own_users
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
        self._descriptor = locked(folder)
        if self._descriptor < 0:
            raise FileExistsError(f"{folder} was taken for one that nobody has")
        try:
            self.overlaid = tuple(self._overlay(number, root, below) for number, root in enumerate(outermost(roots)))
            self._write_table()
            self.started = tick_of(folder)
            """When it was made: whatever changes beneath it from here on has this change time or a later one, and
            whatever changed before has an earlier one."""
        except BaseException:
            self.remove()
            raise

    @classmethod
    def found(cls, folder: str, overlaid: tuple[Overlaid, ...], started: int, *, own_users: bool) -> Self | None:
        """One that was made before, and let go of; None where it is gone, or somebody else has it."""
        descriptor = locked(folder)
        if descriptor < 0:
            return None
        layer = cls.__new__(cls)
        layer.folder, layer.overlaid, layer.started, layer.own_users = folder, overlaid, started, own_users
        layer._descriptor, layer._removal = descriptor, None  # noqa: SLF001  its own
        return layer

    def let_go(self) -> None:
        """It stays, and is nobody's: whoever it was given to sees to it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def precise_links(self) -> bool:
        """Whether overlayfs keeps names of one file together: then a name that it took apart was taken apart."""
        return not self.own_users

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

    def _overlay(self, number: int, root: str, below: "tuple[Layer, ...]") -> Overlaid:
        upper, work = (os.path.join(self.folder, f"{name}-{number}") for name in ("upper", "work"))
        uppers = tuple(over.upper for layer in below for over in layer.overlaid if over.root == root)
        os.mkdir(upper)
        self._dress(upper, root)
        os.mkdir(work, 0o700)
        return Overlaid(root, upper, work, uppers)

    def _dress(self, upper: str, root: str) -> None:
        """What lies on top is what is seen of a root itself, and what new files in it go by: owner, group, mode, and
        lists of who may do what."""
        status = os.stat(root)
        if not self.own_users:
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
            yield f"{lowers[-1]} overlay {options}{',index=on' if self.precise_links else ''} 0 0"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_room_scarce():
            self.remove()
        else:
            self.remove_later()

    def _is_room_scarce(self) -> bool:
        """Whether the disk is about full, maybe of this layer: then what comes of the command needs its room."""
        try:
            disk = os.statvfs(self.folder)
        except OSError:
            return False
        return disk.f_blocks > 0 and disk.f_bavail * disk.f_frsize < _SCARCE


def outermost(roots: Iterable[str]) -> tuple[str, ...]:
    """Without those that lie in another one, in the same order: what lies over that lies over them too."""
    listed = tuple(dict.fromkeys(roots))
    return tuple(root for root in listed if not any(root != other and within(root, other) for other in listed))
