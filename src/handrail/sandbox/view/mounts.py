"""What lies where in a command's view of the disk, as data: nothing here looks at the disk."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

Kind = Literal[
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
"""`shown`: of the machine, read-only. `read-only`, `writable`: roots. `pinned`: stays where it is, as writable as it
was. `sealed`: part of a root that cannot be changed. `home`, `private`: empty, for this command alone. `own-file`:
in that home, a file that handrail has written. `no-file`, `no-folder`: something empty lies over it. `proxy`: the
socket that leads to all of the network there is."""

_ROOTS = frozenset[Kind]({"read-only", "writable", "pinned", "sealed"})
_REAL = _ROOTS | {"shown"}
"""What shows the disk as it is."""


class Mount(NamedTuple):
    """One thing of the view. What it shows is at the same place on the disk, but for what is our own."""

    kind: Kind
    place: str
    target: str = ""
    """Where a link leads to; where a file of our own, or the proxy's socket, is."""


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both are absolute and plain."""
    return folder in {path, "/"} or path.startswith(f"{folder}/")


def order_mounts(wanted: Iterable[Mount]) -> tuple[Mount, ...]:
    """The mounts in the order to be made in: what holds others comes before them. Of two at one place the later counts;
    what is there anyway, or would lie over nothing, is left out."""
    by_place = {mount.place: mount for mount in wanted}
    kept: list[Mount] = []
    around: list[Mount] = []
    for mount in sorted(by_place.values(), key=_names):
        while around and not is_within(mount.place, around[-1].place):
            around.pop()
        if _has_a_point(mount, around[-1].kind if around else None):
            kept.append(mount)
            around.append(mount)
    return tuple(kept)


def is_shown(mounts: Iterable[Mount], path: str) -> bool:
    """Whether something of the disk can be seen at a path or below it."""
    around: Mount | None = None
    for mount in mounts:
        if is_within(path, mount.place):
            around = mount  # the inner ones come later
        elif mount.kind in _REAL and is_within(mount.place, path):
            return True
    if around and around.kind == "link":
        return is_shown(mounts, _led_to(around, path))
    return bool(around and around.kind in _REAL)


def list_pins(sealed: Iterable[str], roots: Iterable[str]) -> Iterator[Mount]:
    """The folders between a root and what is sealed in it: who could rename one would put another in its place."""
    writable = tuple(roots)
    for path in sealed:
        folder = path.rpartition("/")[0]
        while any(folder != root and is_within(folder, root) for root in writable):
            yield Mount("pinned", folder)
            folder = folder.rpartition("/")[0]


def _names(mount: Mount) -> list[str]:
    return [name for name in mount.place.split("/") if name]


def _has_a_point(mount: Mount, around: Kind | None) -> bool:
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


def _led_to(link: Mount, path: str) -> str:
    rest = path.removeprefix(link.place)
    if link.target.startswith("/"):
        return f"{link.target.rstrip('/')}{rest}"
    names = link.place.split("/")[:-1]
    for name in link.target.split("/"):
        if name == "..":
            names = names[:-1]
        elif name not in {"", "."}:
            names.append(name)
    return "/".join(names) + rest
