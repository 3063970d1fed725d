"""Mounts of a view, in order."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from handrail.sandbox.profile import SandboxProfile

# § [sandbox.view.mounts] What lies where in a command's view of the disk, as data: nothing here looks at the disk.

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


# § [sandbox.view.finding] Looks places up on the disk: past the links that lead to them, which a view keeps as they
# § are.

_MAX_LINKS = 40


def find_mounts(path: str) -> tuple[Mount, ...]:
    """What shows a file or folder in a view: the links on the way to it, and itself. Nothing where it is not there."""
    links, real = follow_links(path)
    if real == "/" or not os.path.lexists(real):
        return ()
    return (*links, Mount("shown", real))


def follow_links(path: str) -> tuple[tuple[Mount, ...], str]:
    """The links on the way to a path, each at its own real place, and where it leads to."""
    links: list[Mount] = []
    at, left = "", path.split("/")[::-1]
    while left:
        name = left.pop()
        if name in {"", ".", ".."}:
            at = os.path.dirname(at) if name == ".." else at
            continue
        target = _target(f"{at}/{name}") if len(links) < _MAX_LINKS else ""
        if target:
            links.append(Mount("link", f"{at}/{name}", target))
            left += target.split("/")[::-1]
            at = "" if target.startswith("/") else at
        else:
            at = f"{at}/{name}"
    return tuple(links), at or "/"


def build_empty_mount(path: str) -> Mount:
    """Something empty that lies over a file or folder."""
    return Mount("no-folder" if os.path.isdir(path) else "no-file", path)


def list_folder(folder: str) -> Iterator[str]:
    """The paths in a folder; none where it cannot be listed."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (f"{folder}/{name}" for name in sorted(names))


def has_content(folder: str) -> bool:
    """Whether there is anything in a folder; one that cannot be listed may well hold something."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except PermissionError:
        return True
    except OSError:
        return False


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except (OSError, ValueError):  # no link
        return ""


# § [sandbox.view.presence] Compares what is to be sealed and hidden with what is there: bubblewrap makes what is
# § missing, on the real disk.


def drop_missing(profile: SandboxProfile) -> SandboxProfile:
    """The same profile if everything is as it says; else one without what is gone, each thing as what it is."""
    if all(_as_expected(profile)):
        return profile
    sealed = tuple(path for path in profile.read_only_paths if _mode(path) and not stat.S_ISLNK(_mode(path)))
    hidden = {_past_links(path) for path in (*profile.hidden_files, *profile.hidden_folders)}
    inside = sorted(path for path in hidden if _mode(path) and _is_in_root(path, profile))
    folders = tuple(path for path in inside if stat.S_ISDIR(_mode(path)))
    files = tuple(path for path in inside if path not in folders)
    return msgspec.structs.replace(profile, read_only_paths=sealed, hidden_files=files, hidden_folders=folders)


def _as_expected(profile: SandboxProfile) -> Iterator[bool]:
    for path in profile.read_only_paths:
        yield stat.S_IFMT(_mode(path)) not in {0, stat.S_IFLNK}
    for path in profile.hidden_files:
        yield stat.S_IFMT(_mode(path)) not in {0, stat.S_IFLNK, stat.S_IFDIR}
    for path in profile.hidden_folders:
        yield stat.S_ISDIR(_mode(path))


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _past_links(path: str) -> str:
    return os.path.realpath(path) if stat.S_ISLNK(_mode(path)) else path


def _is_in_root(path: str, profile: SandboxProfile) -> bool:
    return any(is_within(path, root) for root in (*profile.read_only, *profile.writable))


# § [sandbox.view.gathering] Hides folders as a whole where they hold very many hidden files: bubblewrap's time
# § grows with the square of these.

_MAX_HIDDEN_FILES = 50


def collapse_hidden(profile: SandboxProfile, most: int = _MAX_HIDDEN_FILES) -> SandboxProfile:
    """The same where there are few. Else those folders are hidden that hold most of them, until few are left; never one
    that holds a root, the folder the command starts in, or something that it is to see."""
    files = profile.hidden_files
    if len(files) <= most:
        return profile
    needed = (*profile.roots, *profile.read_only_paths, profile.cwd)
    folders: list[str] = []
    for folder, _ in Counter(_folder_of(path) for path in files).most_common():
        if len(files) <= most:
            break
        if not any(is_within(path, folder) for path in needed):
            folders.append(folder)
            files = tuple(path for path in files if not is_within(path, folder))
    hidden = (*(path for path in profile.hidden_folders if not _is_in_any(path, folders)), *folders)
    return msgspec.structs.replace(profile, hidden_files=files, hidden_folders=hidden)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _is_in_any(path: str, folders: list[str]) -> bool:
    return any(is_within(path, folder) for folder in folders)
