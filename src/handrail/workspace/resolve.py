"""Resolves paths without races and without following links."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import Self

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.workspace.errors import build_outside_error
from handrail.workspace.roots import find_descriptor_path
from handrail.workspace.search.engine import SearchScope

# § [workspace.walk] Resolves a path one name at a time, each relative to the descriptor of the folder before it. No
# § step follows a link: links are read and their text is walked in turn. So nothing that anybody renames or
# § replaces meanwhile can lead the walk out of the roots. It serves three needs: links with absolute targets that
# § stay inside, the parent of a file to be written, and systems without openat2.

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_MAX_LINKS = 40

Reroot = Callable[[tuple[str, ...], bool], tuple[int, tuple[str, ...]] | None]
"""Finds the root that an absolute path lies in: its descriptor and the names below it. The path is a link's, or, if the
second argument is true, one that goes up from a root: so only what a person opened for such a path is reached."""


class ResolvedParent:
    """Where a walk ended: an open folder and what is left to do in it."""

    __slots__ = ("folder", "missing", "name")

    def __init__(self, folder: int, name: str, missing: tuple[str, ...]) -> None:
        self.folder = folder
        self.name = name
        """The last name, never a link; empty when the path is the folder itself."""
        self.missing = missing
        """Folders between `folder` and `name` that do not exist yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)

    def open(self, flags: int, mode: int = 0) -> int:
        """A descriptor for what the walk arrived at."""
        if self.missing:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), self.name)
        return os.open(self.name or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.folder)


class _PathWalk:
    """The folders walked through so far and the names still to go."""

    def __init__(self, root: int, parts: tuple[str, ...], reroot: Reroot, spelled: str, *, past_files: bool) -> None:
        self.folders = [os.dup(root)]
        self.pending = list(reversed(parts))
        self.reroot = reroot
        self.spelled = spelled
        self.past_files = past_files
        self.links = 0

    def step(self) -> ResolvedParent | None:
        name = self.pending.pop()
        if name == "..":
            self._up()
        elif not self.pending:
            return self._last(name)
        elif not self._down(name):
            return self._landing(self.pending[0], (name, *reversed(self.pending[1:])))
        return None

    def end(self) -> ResolvedParent:
        return self._landing("", ())

    def close(self) -> None:
        while self.folders:
            os.close(self.folders.pop())

    def _landing(self, name: str, missing: tuple[str, ...]) -> ResolvedParent:
        if ".." in (*missing, name):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), self.spelled)
        return ResolvedParent(self.folders.pop(), name, missing)

    def _up(self) -> None:
        if len(self.folders) == 1:
            self._leave()
        else:
            os.close(self.folders.pop())

    def _leave(self) -> None:
        """Goes up from a root: the names that follow may lead into another one, never to anything between them."""
        above = [part for part in find_descriptor_path(self.folders[0]).split("/") if part][:-1]
        while self.pending and self.pending[-1] == "..":
            self.pending.pop()
            above = above[:-1]
        self.pending = list(reversed(self._entered((*above, *reversed(self.pending)), up=True)))

    def _down(self, name: str) -> bool:
        """Enters a folder; False when there is none of that name, and it could be made."""
        try:
            self.folders.append(os.open(name, _FOLDER, dir_fd=self.folders[-1]))
        except FileNotFoundError:
            return False
        except OSError as error:
            # O_NOFOLLOW on a link reports ELOOP or, with O_DIRECTORY, ENOTDIR.
            if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
                raise
            if not self._follow(name):
                if not self.past_files:
                    raise
                return False
        return True

    def _last(self, name: str) -> ResolvedParent | None:
        if self._follow(name):
            return None if self.pending else self.end()
        return self._landing(name, ())

    def _follow(self, name: str) -> bool:
        """Puts a link's target in the place of its name; False when the name is no link."""
        try:
            target = os.readlink(name, dir_fd=self.folders[-1])
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return False
            raise
        self.links += 1
        if self.links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self.spelled)
        self.pending += reversed(self._inside(target))
        return True

    def _inside(self, target: str) -> tuple[str, ...]:
        parts = tuple(part for part in target.split("/") if part not in {"", "."})
        if not target.startswith("/"):
            return parts
        return self._entered(parts, up=False)

    def _entered(self, parts: tuple[str, ...], *, up: bool) -> tuple[str, ...]:
        """Begins anew in the root that holds an absolute path; the names that are left to go there."""
        found = self.reroot(parts, up)
        if found is None:
            raise build_outside_error(self.spelled)
        self.close()
        self.folders.append(os.dup(found[0]))
        return found[1]


def walk(
    root: int, parts: tuple[str, ...], reroot: Reroot, spelled: str, *, past_files: bool = False
) -> ResolvedParent:
    """Walks `parts`, names and `..`, below an open root and says where they lead. With `past_files`, a file where a
    folder must be counts as a missing folder; otherwise it is an error."""
    progress = _PathWalk(root, parts, reroot, spelled, past_files=past_files)
    try:
        while progress.pending:
            landing = progress.step()
            if landing is not None:
                return landing
        return progress.end()
    finally:
        progress.close()


def is_link(status: os.stat_result) -> bool:
    """Whether a descriptor opened with O_PATH turned out to be a link."""
    return stat.S_ISLNK(status.st_mode)


# § [workspace.search.beneath] Opens what lies below the folder that is searched; no link is followed, neither at
# § the end nor on the way.

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def open_beneath(where: SearchScope, path: str, flags: int) -> int:
    """A descriptor of what is at `path` now; OSError when that is a link, is reached by one, or is gone."""
    if where.kernel:
        return openat2(where.folder, path, flags, resolve=RESOLVE_NO_SYMLINKS)
    way, _, name = path.rpartition("/")
    inner = os.dup(where.folder)
    try:
        for step in way.split("/") if way else ():
            inner, outer = os.open(step, _STEP, dir_fd=inner), inner
            os.close(outer)
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inner)
    finally:
        os.close(inner)


# § [workspace.new_folders] Folders on the way to a new file.


class NewFolders:
    """Folders made on the way to a new file; taken back unless the file got there."""

    def __init__(self, folder: int, names: tuple[str, ...]) -> None:
        self._made: list[tuple[int, str]] = []
        self.innermost = os.dup(folder)
        self._kept = False
        try:
            for name in names:
                self._enter(name)
        except OSError:
            self.close()
            raise

    def keep(self) -> None:
        """The file is there: the folders stay."""
        self._kept = True

    def close(self) -> None:
        """Gives the descriptors back, innermost first."""
        os.close(self.innermost)
        for outer, name in reversed(self._made):
            if not self._kept:
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=outer)
            os.close(outer)

    def _enter(self, name: str) -> None:
        new = True
        try:
            os.mkdir(name, dir_fd=self.innermost)
        except FileExistsError:
            new = False
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.innermost)
        except OSError:
            if new:
                os.rmdir(name, dir_fd=self.innermost)
            raise
        if new:
            self._made.append((self.innermost, name))
        else:
            os.close(self.innermost)
        self.innermost = inner


def sync_folder(folder: int) -> None:
    """Makes the new name survive power loss, where the folder can be opened for it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
