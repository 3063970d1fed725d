"""Roots of a workspace, and paths below them."""

import errno
import os
import sys
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

import msgspec

from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.wire import escape_surrogates
from handrail.workspace.errors import build_outside_error, clip_path

# § [workspace.root] A root: a folder held open by its descriptor, so that renaming a parent cannot move it
# § elsewhere.

_GONE = " (deleted)"
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class Root:
    """One folder that file tools may work in."""

    __slots__ = ("descriptor", "main", "opened_by_person", "parts", "path", "spellings", "writable")

    def __init__(self, path: str, *, writable: bool = True, main: bool = False) -> None:
        spelled = os.path.abspath(path)
        self.path = os.path.realpath(spelled)
        try:
            self.descriptor = os.open(self.path, _FOLDER)
        except OSError as error:
            raise UsageError(f"the folder {path!r} cannot be opened: {error.strerror}") from error
        self.parts = _parts(self.path)
        self.spellings = tuple({self.parts: None, _parts(spelled): None})
        self.writable = writable
        self.main = main
        self.opened_by_person = False
        """Whether a person opened it when asked; what was opened for reading may then be asked about again."""

    def beneath(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """The rest of an absolute path below this root, or None; compares whole names, never prefixes of text."""
        for own in self.spellings:
            if parts[: len(own)] == own:
                return parts[len(own) :]
        return None

    def has_name(self, path: str | None) -> bool:
        """Whether the root can be named by a path; None asks for nothing."""
        return path is None or _parts(path) in self.spellings

    def display_path(self, relative: str) -> str:
        """A path below this root as results name it: relative in the workspace, absolute elsewhere."""
        return escape_surrogates(relative if self.main else os.path.normpath(os.path.join(self.path, relative)))

    def close(self) -> None:
        """Gives the descriptor back."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def open_root(folder: str, *, writable: bool, named: str | None = None) -> Root | None:
    """The root of a folder that a person opened; None where something else is there now."""
    try:
        root = Root(folder, writable=writable)
    except UsageError:
        return None
    if root.path != folder or find_descriptor_path(root.descriptor) != folder:
        root.close()
        return None
    root.opened_by_person = True
    if named is not None:
        root.spellings = (*root.spellings, _parts(named))
    return root


def check_roots(roots: Iterable[Root], done: str = "No command was run.") -> None:
    """CONFLICT where a root is no longer where it was: whoever goes by its name gets to what took its place. `done`:
    what became of the command, in words."""
    for root in roots:
        if not _is_there(root):
            path = escape_surrogates(root.path)[:200]
            message = f"The folder {path} was moved or removed, and something else may be there now."
            raise ToolError("CONFLICT", f"{message} {done} The file tools still work in it.")


def _is_there(root: Root) -> bool:
    try:
        return os.path.samestat(os.lstat(root.path), os.fstat(root.descriptor))
    except OSError:
        return False


def find_descriptor_path(descriptor: int) -> str:
    """Where an open file or folder is now."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  only there does it have F_GETPATH

        return fcntl.fcntl(descriptor, fcntl.F_GETPATH, b"\0" * 1024).rstrip(b"\0").decode()
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    return _without_mark(path, descriptor) if path.endswith(_GONE) else path


def _without_mark(path: str, descriptor: int) -> str:
    """The kernel marks what was removed while open; but a file may also be called so."""
    try:
        still_there = os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        still_there = False
    return path if still_there else path.removesuffix(_GONE)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


# § [workspace.place] Reads a path as it was spelled: which root it means and which names below it. No disk is
# § touched.


class SpelledPath(msgspec.Struct, frozen=True):
    """A root and the way below it, as spelled."""

    root: Root
    parts: tuple[str, ...]
    spelled: str
    path: str
    """The way below the root as text."""
    owner: Root
    """The innermost root the place is in, if no link is on the way."""
    straight: str | None
    """The way below that root without `..`, if no link is on the way; None when it leaves the roots."""
    named: str | None
    """The same as results name it."""


def parse_path(path: str, roots: tuple[Root, ...]) -> SpelledPath:
    """The place a path names; ToolError when it can be none, OSError EXDEV when it is in no root."""
    refuse_impossible(path)
    if not path.startswith("/"):
        return _placed(roots[0], _split_path(path), path, roots)
    parts = _split_path(path)
    found = find_innermost_root(parts, roots)
    if found is None:
        raise build_outside_error(path)
    return _placed(*found, path, roots)


def find_innermost_root(parts: tuple[str, ...], roots: tuple[Root, ...]) -> tuple[Root, tuple[str, ...]] | None:
    """The root nearest to what an absolute path names, and the rest of the path below it."""
    best: tuple[Root, tuple[str, ...]] | None = None
    for root in roots:
        rest = root.beneath(parts)
        if rest is not None and (best is None or len(rest) < len(best[1])):
            best = (root, rest)
    return best


def refuse_impossible(path: str) -> None:
    """No file system has a file of this name."""
    if 0 < len(path) < 250 and path.isascii() and "\0" not in path:
        return  # nearly every path; what is below can only fail for the others
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


def _placed(root: Root, parts: tuple[str, ...], spelled: str, roots: tuple[Root, ...]) -> SpelledPath:
    path = "/".join(parts) or "."
    straight = _without_dots(parts)
    found = find_innermost_root(root.parts + straight, roots) if straight is not None else None
    if found is None:
        return SpelledPath(root, parts, spelled, path, root, None, None)
    owner, rest = found[0], "/".join(found[1]) or "."
    return SpelledPath(root, parts, spelled, path, owner, rest, owner.display_path(rest))


def _without_dots(parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names without `..`, right only where no link is on the way; None when they leave the root."""
    if ".." not in parts:
        return parts
    kept: list[str] = []
    for part in parts:
        if part != "..":
            kept.append(part)
        elif kept:
            kept.pop()
        else:
            return None
    return tuple(kept)


def _split_path(path: str) -> tuple[str, ...]:
    return tuple([part for part in path.split("/") if part not in {"", "."}])


# § [workspace.roots] Which roots there are now. Some come and go: folders that a person opens, for a while or for
# § one call.

_MAX_KEPT_PLACES = 1024


class RootSet:
    """Some roots, and the places that were looked up in them. It never changes: others take its place."""

    __slots__ = ("_places", "all", "innermost_first")

    def __init__(self, roots: tuple[Root, ...]) -> None:
        self.all = roots
        self.innermost_first = sorted(roots, key=lambda root: -len(root.parts))
        self._places: dict[str, SpelledPath] = {}

    def place(self, path: str) -> SpelledPath:
        """Which place a path names; kept, since every call asks at least twice."""
        found = self._places.get(path)
        if found is None:
            found = parse_path(path, self.all)
            if len(self._places) >= _MAX_KEPT_PLACES:
                self._places.clear()
            self._places[path] = found
        return found

    def holding(self, real: str) -> Root:
        """The root that a path, as results name it, is in."""
        parts = tuple(part for part in real.split("/") if part) if real.startswith("/") else None
        found = find_innermost_root(parts, self.all) if parts is not None else None
        return found[0] if found is not None else self.all[0]


class _Own(threading.local):
    roots: RootSet | None = None


class SessionRoots:
    """The roots of a session: those that it was given, those of active skills, those that people opened, those that its
    client works on, and those lent to one call."""

    def __init__(self, given: tuple[Root, ...]) -> None:
        self._given = given
        self._brought: tuple[Root, ...] = ()
        self._opened: tuple[Root, ...] = ()
        self._joined: tuple[Root, ...] = ()
        self._shared = RootSet(given)
        self._own = _Own()
        self._retired: list[Root] = []

    @property
    def now(self) -> RootSet:
        """The roots that this thread sees."""
        return self._own.roots or self._shared

    @property
    def opened(self) -> tuple[Root, ...]:
        """Those that people opened."""
        return self._opened

    def set_opened_roots(self, roots: Sequence[Root]) -> None:
        """Puts these in the place of all that people opened before."""
        self._retire(self._opened, roots)
        self._opened = tuple(roots)
        self._share()

    def set_skill_roots(self, roots: Sequence[Root]) -> None:
        """Puts these in the place of all that active skills brought before."""
        self._retire(self._brought, roots)
        self._brought = tuple(roots)
        self._share()

    @property
    def brought(self) -> tuple[Root, ...]:
        """Those that active skills brought."""
        return self._brought

    def set_client_roots(self, roots: Sequence[Root]) -> None:
        """Puts these in the place of all that the client worked on before."""
        self._retire(self._joined, roots)
        self._joined = tuple(roots)
        self._share()

    @property
    def joined(self) -> tuple[Root, ...]:
        """Those that the client works on."""
        return self._joined

    def _share(self) -> None:
        self._shared = RootSet((*self._given, *self._brought, *self._joined, *self._opened))

    def _retire(self, before: Sequence[Root], now: Sequence[Root]) -> None:
        # A call may be on its way through one of them, and its number must not become another file's meanwhile.
        self._retired += [root for root in before if root not in now]

    @contextmanager
    def temporarily(self, roots: Sequence[Root]) -> Generator[None]:
        """While it lasts this thread sees these as well, and no other thread does."""
        before = self._own.roots
        self._own.roots = RootSet((*self._shared.all, *roots)) if roots else before
        try:
            yield
        finally:
            self._own.roots = before

    def close(self) -> None:
        """Gives every descriptor back."""
        for root in (*self._shared.all, *self._retired):
            root.close()
