"""Looks where a path leads that no root holds, so that a person can be asked about it. Nothing is read there."""

import os
import stat

import msgspec

from handrail.policy.names import can_hold_credentials, find_protection
from handrail.protocol.decision import Access, FileKind, PathFact
from handrail.workspace.root import Root, find_descriptor_path

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
