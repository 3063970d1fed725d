"""The mounts that make up the file system of a command."""

import os
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from handrail.settings.paths import walk_links
from handrail.workspace.roots import is_inside

MountKind = Literal[
    "shown",
    "read-only",
    "writable",
    "pinned",
    "sealed",
    "home",
    "own-file",
    "private",
    "link",
    "no-file",
    "no-folder",
    "processes",
    "devices",
    "proxy",
]
"""`shown`: a read-only part of the machine. `read-only`, `writable`: roots. `pinned`: a folder that cannot be renamed,
as writable as before. `sealed`: a read-only part of a root. `home`, `private`: an empty folder for this command alone.
`own-file`: a file in that home, written by handrail. `no-file`, `no-folder`: covers a path by something empty.
`proxy`: the socket of the proxy."""

_ROOTS = frozenset[MountKind]({"read-only", "writable", "pinned", "sealed"})
_REAL = _ROOTS | {"shown"}
"""Mounts that show the disk as it is."""


class Mount(NamedTuple):
    """One mount. It shows the same path of the disk, unless it has a target."""

    kind: MountKind
    place: str
    target: str = ""
    """The target of a link, or the path of handrail's own file or socket."""


def order_mounts(wanted: Iterable[Mount]) -> tuple[Mount, ...]:
    """The mounts in the order to make them: outer ones first. Of two at one place the later counts. Mounts without an
    effect are left out."""
    by_place = {mount.place: mount for mount in wanted}
    ordered: list[Mount] = []
    around: list[Mount] = []
    for mount in sorted(by_place.values(), key=lambda mount: mount.place.strip("/").split("/")):
        while around and not is_inside(mount.place, around[-1].place):
            around.pop()
        if _has_effect(mount, around[-1].kind if around else None):
            ordered.append(mount)
            around.append(mount)
    return tuple(ordered)


def is_shown(mounts: Iterable[Mount], path: str) -> bool:
    """Whether ordered mounts show a part of the disk at a path or below it."""
    around: Mount | None = None
    for mount in mounts:
        if is_inside(path, mount.place):
            around = mount  # the inner ones come later
        elif mount.kind in _REAL and is_inside(mount.place, path):
            return True
    if around and around.kind == "link":
        target = os.path.join(os.path.dirname(around.place), around.target)
        return is_shown(mounts, os.path.normpath(target).rstrip("/") + path.removeprefix(around.place))
    return bool(around and around.kind in _REAL)


def list_pins(sealed: Iterable[str], roots: Iterable[str]) -> Iterator[Mount]:
    """The folders between a root and sealed paths in it. A command that renames one could replace a sealed path."""
    writable = tuple(roots)
    for path in sealed:
        folder = path.rpartition("/")[0]
        while any(folder != root and is_inside(folder, root) for root in writable):
            yield Mount("pinned", folder)
            folder = folder.rpartition("/")[0]


def find_mounts(path: str) -> tuple[Mount, ...]:
    """The mounts that show a file or folder: the links on the way to it, and itself. Empty if it does not exist."""
    links, real = follow_links(path)
    if real == "/" or not os.path.lexists(real):
        return ()
    return (*links, Mount("shown", real))


def follow_links(path: str) -> tuple[tuple[Mount, ...], str]:
    """The links on the way to a path, each at its real place, and the real path."""
    steps, real = walk_links(path)
    return tuple(Mount("link", step.place, step.target) for step in steps if step.target), real


def build_empty_mount(path: str) -> Mount:
    """A mount that covers a file or folder by an empty one."""
    return Mount("no-folder" if os.path.isdir(path) else "no-file", path)


def list_folder(folder: str) -> Iterator[str]:
    """The paths in a folder. None if it cannot be listed."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (f"{folder}/{name}" for name in sorted(names))


def has_content(folder: str) -> bool:
    """Whether a folder may have content. True if listing it is not permitted."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except PermissionError:
        return True
    except OSError:
        return False


def _has_effect(mount: Mount, around: MountKind | None) -> bool:
    match mount.kind:
        case "shown" | "link":
            return around not in _REAL
        case "home":
            return around not in _ROOTS
        case "own-file":
            return around == "home"
        case "sealed" | "pinned":
            return around in _ROOTS
        case "no-file" | "no-folder":
            return around in _REAL
        case _:
            return True
