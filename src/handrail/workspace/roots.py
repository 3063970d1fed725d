"""Roots: the folders that file tools may work in."""

import errno
import os
import sys
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Literal

import msgspec

from handrail.policy.names import can_hold_credentials, find_protection
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.wire import escape_surrogates

_DELETED_MARK = " (deleted)"
_MAX_CACHED_PATHS = 1024
_NO_FILES = ("/proc", "/sys", "/dev", "/run/secrets", "/run/user")
"""Folders without ordinary files, and folders of secrets."""
_SYSTEM = frozenset({"/etc"})
_HOMES = frozenset({"/home", "/Users"})

_RootSource = Literal["skills", "client", "person"]
"""Roots come and go: those of active skills, those that the client works on, and those that a person opened."""


class Root:
    """A folder that file tools may work in. Its open descriptor holds even if a parent is renamed."""

    __slots__ = ("descriptor", "main", "opened_by_person", "parts", "path", "spellings", "writable")

    def __init__(self, path: str, *, writable: bool = True, main: bool = False) -> None:
        spelled = os.path.abspath(path)
        self.path = os.path.realpath(spelled)
        try:
            self.descriptor = os.open(self.path, os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY))
        except OSError as error:
            raise UsageError(f"the folder {path!r} cannot be opened: {error.strerror}") from error
        self.parts = split_parts(self.path)
        self.spellings = tuple({self.parts: None, split_parts(spelled): None})
        self.writable = writable
        self.main = main
        self.opened_by_person = False
        """Whether a person opened it when asked. If it is read-only, they may be asked again."""

    def find_rest(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """The rest of an absolute path below this root. None if it is elsewhere."""
        for own in self.spellings:
            if parts[: len(own)] == own:
                return parts[len(own) :]
        return None

    def has_name(self, path: str | None) -> bool:
        """Whether a path names this root. None always does."""
        return path is None or split_parts(path) in self.spellings

    def display_path(self, relative: str) -> str:
        """A path below this root as results show it: relative in the workspace, absolute elsewhere."""
        return escape_surrogates(relative if self.main else os.path.normpath(os.path.join(self.path, relative)))

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def open_extra_roots(read_only: Iterable[str], writable: Iterable[str]) -> list[Root]:
    """The roots that the settings add to a workspace."""
    return [*(Root(path, writable=False) for path in read_only), *(Root(path) for path in writable)]


def open_root(folder: str, *, writable: bool, named: str | None = None) -> Root | None:
    """The root of a folder that a person opened. None if another folder is there now."""
    try:
        root = Root(folder, writable=writable)
    except UsageError:
        return None
    if root.path != folder or find_descriptor_path(root.descriptor) != folder:
        root.close()
        return None
    root.opened_by_person = True
    if named is not None:
        root.spellings = (*root.spellings, split_parts(named))
    return root


def check_roots(roots: Iterable[Root], done: str = "No command was run.") -> None:
    """Raises CONFLICT if a root is no longer at its path, since a command goes by the path. `done`: its outcome."""
    for root in roots:
        try:
            is_moved = not os.path.samestat(os.lstat(root.path), os.fstat(root.descriptor))
        except OSError:
            is_moved = True
        if is_moved:
            path = escape_surrogates(root.path)[:200]
            message = f"The folder {path} was moved or removed, and its path may now have other content."
            raise ToolError("CONFLICT", f"{message} {done} The file tools still work in it.")


class Boundary(msgspec.Struct, frozen=True):
    """The folders of this machine that never become roots."""

    homes: tuple[str, ...]
    own: tuple[str, ...]
    """Folders of handrail's state and settings."""

    def find_closed_reason(self, folder: str) -> str:
        """Why a folder never becomes a root, in words. Empty if it may."""
        if any(is_inside(folder, place) for place in _NO_FILES):
            return "it has no files to work with"
        if any(is_inside(folder, place) or is_inside(place, folder) for place in self.own):
            return "it has handrail's own files"
        holds_home = any(is_inside(home, folder) for home in (*self.homes, "/root"))
        if folder in _SYSTEM | _HOMES or holds_home or os.path.dirname(folder) in _HOMES:
            return f"{folder} is never opened as a whole"
        if find_protection(folder) == "credential" or can_hold_credentials(folder):
            return "credentials are kept there"
        return "" if folder.isprintable() else "its name has unprintable characters"


class SessionRoots:
    """The roots of a session: fixed ones, replaceable ones by their source, and those lent to one call."""

    def __init__(self, fixed: tuple[Root, ...]) -> None:
        self._fixed = fixed
        self.sources: dict[_RootSource, tuple[Root, ...]] = {"skills": (), "client": (), "person": ()}
        self._shared = RootSet(fixed)
        self._own = _ThreadRoots()
        self._retired: list[Root] = []

    @property
    def current(self) -> "RootSet":
        """The roots that this thread sees."""
        return self._own.roots or self._shared

    def replace(self, source: _RootSource, roots: Sequence[Root]) -> None:
        # A running call may use a root that goes. Its descriptor stays open, or its number could become another file's.
        self._retired += [root for root in self.sources[source] if root not in roots]
        self.sources[source] = tuple(roots)
        self._shared = RootSet((*self._fixed, *(root for group in self.sources.values() for root in group)))

    @contextmanager
    def lend(self, roots: Sequence[Root]) -> Generator[None]:
        before = self._own.roots
        self._own.roots = RootSet((*self._shared.all, *roots)) if roots else before
        try:
            yield
        finally:
            self._own.roots = before

    def close(self) -> None:
        for root in (*self._shared.all, *self._retired):
            root.close()


class SpelledPath(msgspec.Struct, frozen=True):
    """A path read by its spelling alone. No file system was asked."""

    root: Root
    parts: tuple[str, ...]
    spelled: str
    path: str
    """The path below the root."""
    owner: Root
    """The innermost root that holds the path, if no link is on the way."""
    straight: str | None
    """The path below that root without `..`, if no link is on the way. None if it leaves the roots."""
    named: str | None
    """The same as results show it."""


class RootSet:
    """An unchangeable set of roots, with a cache of the paths read in it."""

    __slots__ = ("_paths", "all", "innermost_first")

    def __init__(self, roots: tuple[Root, ...]) -> None:
        self.all = roots
        self.innermost_first = sorted(roots, key=lambda root: -len(root.parts))
        self._paths: dict[str, SpelledPath] = {}

    def parse(self, path: str) -> SpelledPath:
        """Reads a path. ToolError if it is impossible, OSError EXDEV if it is in no root."""
        known = self._paths.get(path)
        if known is None:
            known = _parse_path(path, self.all)
            if len(self._paths) >= _MAX_CACHED_PATHS:
                self._paths.clear()
            self._paths[path] = known
        return known

    def find_root(self, real: str) -> Root:
        """The root of a path as results show it."""
        found = find_innermost_root(split_parts(real), self.all) if real.startswith("/") else None
        return found[0] if found is not None else self.all[0]


class _ThreadRoots(threading.local):
    roots: RootSet | None = None


def find_innermost_root(parts: tuple[str, ...], roots: tuple[Root, ...]) -> tuple[Root, tuple[str, ...]] | None:
    """The innermost root that holds an absolute path, and the rest of the path below it."""
    best: tuple[Root, tuple[str, ...]] | None = None
    for root in roots:
        rest = root.find_rest(parts)
        if rest is not None and (best is None or len(rest) < len(best[1])):
            best = (root, rest)
    return best


def find_descriptor_path(descriptor: int) -> str:
    """The path of an open file or folder now."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  F_GETPATH exists only on macOS

        return fcntl.fcntl(descriptor, fcntl.F_GETPATH, b"\0" * 1024).rstrip(b"\0").decode()
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if not path.endswith(_DELETED_MARK):
        return path
    # The kernel marks removed files so, but a file may also have such a name.
    try:
        is_name = os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        is_name = False
    return path if is_name else path.removesuffix(_DELETED_MARK)


def split_parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def is_inside(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder or below it, by its spelling."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _parse_path(path: str, roots: tuple[Root, ...]) -> SpelledPath:
    _refuse_impossible(path)
    root, parts = roots[0], tuple([part for part in path.split("/") if part not in {"", "."}])
    if path.startswith("/"):
        found = find_innermost_root(parts, roots)
        if found is None:
            raise build_outside_error(path)
        root, parts = found
    relative = "/".join(parts) or "."
    straight = _remove_dots(parts)
    found = find_innermost_root(root.parts + straight, roots) if straight is not None else None
    if found is None:
        return SpelledPath(root, parts, path, relative, root, None, None)
    owner, rest = found[0], "/".join(found[1]) or "."
    return SpelledPath(root, parts, path, relative, owner, rest, owner.display_path(rest))


def _refuse_impossible(path: str) -> None:
    if 0 < len(path) < 250 and path.isascii() and "\0" not in path:
        return  # nearly every path
    if not path:
        raise ToolError("INVALID_ARGUMENT", "path is empty; pass a path relative to the workspace, or . for all of it.")
    if "\0" in path:
        raise ToolError("INVALID_ARGUMENT", f"path holds a NUL character: {clip_path(path)}")
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise ToolError("INVALID_ARGUMENT", f"path is not valid text: {clip_path(path)}") from None
    if length >= 4096:
        raise ToolError("INVALID_ARGUMENT", f"path is {length} bytes long; the system allows 4095: {clip_path(path)}")
    if any(len(os.fsencode(part)) > 255 for part in path.split("/")):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)


def _remove_dots(parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """Resolves `..` by spelling, which is right if no link is on the way. None if the names leave the root."""
    if ".." not in parts:
        return parts
    names: list[str] = []
    for part in parts:
        if part != "..":
            names.append(part)
        elif names:
            names.pop()
        else:
            return None
    return tuple(names)


def clip_path(path: str) -> str:
    """A path for a message: escaped, and without its middle if it is long."""
    visible = path if path.isprintable() else path.encode("unicode_escape", "surrogatepass").decode("ascii")
    return visible if len(visible) <= 200 else f"{visible[:160]}…{visible[-36:]}"


def build_outside_error(path: str) -> OSError:
    return OSError(errno.EXDEV, "outside the workspace", path)
