"""Facts about a path for the policy."""

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from handrail.policy.git_config import disable_drivers, list_included_paths
from handrail.policy.names import can_hold_credentials, find_protection, is_git_control_name, normalize_name
from handrail.protocol.decisions import Access, FileKind, PathFact
from handrail.protocol.errors import ToolError
from handrail.workspace.roots import Root, find_descriptor_path

# § [workspace.outside] Looks where a path leads that no root holds, so that a person can be asked about it. Nothing
# § is read there.

_LOOK = os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_NO_FILES = ("/proc", "/sys", "/dev", "/run/secrets", "/run/user")
"""What is in these is no file of anybody's, or is secret."""
_SYSTEM = frozenset({"/etc"})
_HOMES = frozenset({"/home", "/Users"})


class Boundary(msgspec.Struct, frozen=True):
    """What is never opened, wherever it is on this machine."""

    homes: tuple[str, ...]
    own: tuple[str, ...]
    """Where handrail keeps its state and its settings."""

    def find_closed_reason(self, folder: str) -> str:
        """Why a folder is never opened, in words; empty where it may be."""
        if any(_is_in(folder, place) for place in _NO_FILES):
            return "what is there are no files to work with"
        if any(_is_in(folder, place) or _is_in(place, folder) for place in self.own):
            return "what handrail keeps for itself is there"
        if folder in _SYSTEM or any(_is_in(home, folder) for home in (*self.homes, "/root")) or _is_home(folder):
            return f"{folder} is never opened as a whole"
        if find_protection(folder) == "credential" or can_hold_credentials(folder):
            return "credentials are kept there"
        return "" if folder.isprintable() else "its name has characters that cannot be shown"


class _OutsidePath(msgspec.Struct, frozen=True):
    real: str
    kind: FileKind
    size: int | None = None


def build_outside_fact(main: Root, roots: tuple[Root, ...], path: str, access: Access, boundary: Boundary) -> PathFact:
    """The fact about a path that no root holds, or that is held for reading only."""
    seen = _named(main, path) if access == "delete" else _seen(main, path)
    folder = seen.real if seen.kind == "directory" else _nearest(seen.real)
    shut = (
        _leads_back(seen.real, roots)
        or boundary.find_closed_reason(folder)
        or _is_out_of_reach(path, seen.real, folder)
    )
    return PathFact(
        path=path, access=access, kind=seen.kind, size=seen.size, outside=seen.real, folder=folder, closed_reason=shut
    )


def find_spelled_folder(path: str, real: str, folder: str) -> str | None:
    """The folder as an absolute path names it; None where it does not, or is no absolute path."""
    below = real[len(folder) :].strip("/")
    spelled = path.rstrip("/")
    if (
        not path.startswith("/")
        or ".." in path.split("/")
        or not f"{spelled}/".endswith(f"/{below}/" if below else "/")
    ):
        return None
    start = spelled[: len(spelled) - len(below)].rstrip("/") or "/"
    return start if os.path.realpath(start) == folder else None


def _is_out_of_reach(path: str, real: str, folder: str) -> str:
    if not path.startswith("/") or find_spelled_folder(path, real, folder) is not None:
        return ""
    return f"it leads to {real}, so name it by that path"


def _leads_back(real: str, roots: tuple[Root, ...]) -> str:
    inside = any(_is_in(real, root.path) for root in roots if not root.opened_by_person)
    return f"it leads back to {real}, so name it by that path" if inside else ""


def _seen(main: Root, path: str) -> _OutsidePath:
    """By a descriptor where something is: then nobody can turn a link while we look."""
    try:
        descriptor = os.open(path, _LOOK, dir_fd=main.descriptor)
    except OSError:
        return _OutsidePath(os.path.realpath(_absolute(main, path)), "missing")
    try:
        return _of(find_descriptor_path(descriptor), os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _named(main: Root, path: str) -> _OutsidePath:
    """What a name is, not where it leads: a link is removed itself."""
    folder, _, name = _absolute(main, path.rstrip("/")).rpartition("/")
    if name in {"", ".", ".."}:
        return _seen(main, path)
    real = os.path.join(os.path.realpath(folder or "/"), name)
    try:
        return _of(real, os.lstat(real))
    except OSError:
        return _OutsidePath(real, "missing")


def _of(real: str, status: os.stat_result) -> _OutsidePath:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return _OutsidePath(real, "file", status.st_size)
    return _OutsidePath(real, "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other")


def _absolute(main: Root, path: str) -> str:
    return os.path.join(find_descriptor_path(main.descriptor), path)


def _nearest(real: str) -> str:
    folder: str = os.path.dirname(real)
    while not os.path.isdir(folder) and folder not in {"/", ""}:
        folder = os.path.dirname(folder)
    return folder or "/proc"  # what has no place in the tree was reached by a number there


def _is_home(folder: str) -> bool:
    return folder in _HOMES or os.path.dirname(folder) in _HOMES


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# § [workspace.repository] Whether a folder is a git repository, or becomes one, whatever it is called.

_MADE_OF = ("HEAD", "objects", "refs", "commondir")


def is_repository_change(folder: int, name: str, *, adds: bool) -> bool:
    """Whether a change of a name in a folder steers the repository that the folder is, or makes it one."""
    if normalize_name(name) != "head" and not _exists(folder, "HEAD"):
        return False  # hardly any folder has one
    there = {part for part in _MADE_OF if _exists(folder, part)}
    if _is_repository(there):
        return is_git_control_name(name)
    return adds and _is_repository(there | {part for part in _MADE_OF if part.casefold() == normalize_name(name)})


def _is_repository(there: set[str]) -> bool:
    return "HEAD" in there and ("commondir" in there or {"objects", "refs"} <= there)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


# § [workspace.tracked] What git knows of the workspace, read from its files: git itself would run what a repository
# § configures.

_OWN_CONFIGS = ("/etc/gitconfig", "/usr/local/etc/gitconfig", "~/.gitconfig", "~/.config/git/config")
_MAX_CONFIGS_BYTES, _MIN_COUNTED_BYTES = 16 << 20, 4096  # bytes, of all files and of each
_MAX_INDEX_BYTES = 256 << 20
_LENGTH = 0x0FFF
"""The bits of an entry's flags that hold the length of its name."""


def list_tracked(paths: Iterable[str], roots: Iterable[str]) -> frozenset[str]:
    """Those of the files, by absolute paths in the roots, that the repository around them tracks; of folders, those in
    which it tracks something."""
    within = tuple(roots)
    return frozenset(path for path in paths if _is_tracked(path, within))


def build_driver_settings(configs: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Settings, name and value, that disable the filters and text converters of these git configurations, of the
    machine's, the user's and those that they include. ToolError where they are too many to read."""

    paths = [*map(os.path.expanduser, _OWN_CONFIGS), *configs]
    found, left = dict[str, str](), _MAX_CONFIGS_BYTES
    for path in paths:  # it grows meanwhile
        text = _text(path, left)
        left -= max(len(text), _MIN_COUNTED_BYTES)
        if left <= 0:
            raise ToolError("LIMIT_EXCEEDED", "The workspace has too much git configuration to check. git was not run.")
        found |= disable_drivers(text)
        named = (os.path.join(os.path.dirname(path), os.path.expanduser(one)) for one in list_included_paths(text))
        paths += [one for one in map(os.path.normpath, named) if one not in paths]
    return tuple(sorted(found.items()))


def _text(path: str, most: int) -> str:
    def opened(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NONBLOCK)

    with contextlib.suppress(OSError, ValueError), open(path, "rb", opener=opened) as file:
        return os.fsdecode(file.read(most) or b"")
    return ""  # git cannot read it either


def _is_tracked(path: str, roots: tuple[str, ...]) -> bool:
    folder = path
    while folder not in roots and folder != "/":
        folder = os.path.dirname(folder)
        index = os.path.join(folder, ".git", "index")
        if (found := _state(index)) is not None:
            return _holds(_content(index, found), os.fsencode(os.path.relpath(path, folder)))
    return False


def _holds(index: bytes, name: bytes) -> bool:
    """Whether an entry has this name, or one in that folder: its length stands before it, a NUL behind. Indexes of
    version 4 shorten names, so that only some are found in those."""
    place = index.find(name)
    while place >= 0:
        length = min(index.find(b"\0", place) - place, _LENGTH)
        is_whole = index[place + len(name) : place + len(name) + 1] in {b"\0", b"/"}
        if is_whole and int.from_bytes(index[place - 2 : place], "big") & _LENGTH == length:
            return True
        place = index.find(name, place + 1)
    return False


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns, status.st_size


@lru_cache(maxsize=4)
def _content(path: str, _state: tuple[int, int, int]) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(_MAX_INDEX_BYTES)
    except OSError:
        return b""


# § [workspace.other_names] Finds the other names (hard links) that files have in a root.

FileId = tuple[int, int]
"""What tells a file apart: its device and its number."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def list_hard_links(root: str, wanted: Mapping[FileId, int]) -> Iterator[tuple[str, FileId]]:
    """Every name in a root of the files that are wanted, below the root. They come with how many names they have: when
    all of them are found, nobody looks further."""
    left = Counter(wanted)
    waiting = [""]
    numbers = {number for _, number in wanted}
    while waiting and left:
        folder = waiting.pop()
        for name, number, is_folder in _entries(root, folder):
            path = f"{folder}/{name}" if folder else name
            if is_folder:
                waiting.append(path)
            elif number in numbers:
                file = _file_at(root, path)
                if file is not None and file in left:
                    yield path, file
                    left[file] -= 1
                    left += Counter()


def _entries(root: str, folder: str) -> list[tuple[str, int, bool]]:
    """What is in a folder; nothing where nobody may look, since nobody can write through such a name either."""
    try:
        descriptor = os.open(os.path.join(root, folder), _FOLDER)
    except OSError:
        return []
    try:
        with os.scandir(descriptor) as entries:
            return [(entry.name, entry.inode(), entry.is_dir(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(descriptor)


def _file_at(root: str, path: str) -> FileId | None:
    try:
        status = os.lstat(os.path.join(root, path))
    except OSError:
        return None
    return status.st_dev, status.st_ino
