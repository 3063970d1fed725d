"""Opens paths so that no rename or new link can divert them."""

import contextlib
import errno
import os
from collections.abc import Callable, Generator, Iterable
from typing import Self

from handrail.kernel.files import RESOLVE_NO_SYMLINKS, openat2
from handrail.workspace.roots import build_outside_error, find_descriptor_path

INSPECT = os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
"""Opens anything for its status and its path. It needs no permission to read."""
READ_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens a file for reading and does not wait for the writer of a FIFO."""
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
LIST_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ENTER_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a folder as a start for other paths. It needs no permission to list."""

_MAX_LINKS = 40

_Reroot = Callable[[tuple[str, ...], bool], tuple[int, tuple[str, ...]] | None]
"""Finds the root of an absolute path: its descriptor and the names below it. The second argument is true for a path
that goes up from a root. Such a path reaches only roots that a person opened."""


def open_beneath(folder: int, path: str, flags: int, *, kernel: bool = False) -> int:
    """Opens a path below an open folder. OSError if the path is a link or has one on its way.

    `kernel`: whether openat2 resolves the path.
    """
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    if kernel:
        return openat2(folder, path, flags, resolve=RESOLVE_NO_SYMLINKS)
    if "/" not in path:
        return os.open(path, flags, dir_fd=folder)
    *names, last = path.split("/")
    inner = folder
    try:
        for name in names:
            inner, outer = os.open(name, ENTER_FOLDER, dir_fd=inner), inner
            if outer != folder:
                os.close(outer)
        return os.open(last, flags, dir_fd=inner)
    finally:
        if inner != folder:
            os.close(inner)


def enter_folders(folder: int, names: Iterable[str]) -> Generator[int]:
    """Yields a descriptor of a folder, then of each folder in the one before. The next step closes a descriptor."""
    inner = os.dup(folder)
    try:
        yield inner
        for name in names:
            inner, outer = open_beneath(inner, name, ENTER_FOLDER), inner
            os.close(outer)
            yield inner
    finally:
        os.close(inner)


@contextlib.contextmanager
def closing_descriptor(descriptor: int) -> Generator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class ResolvedParent:
    """An open folder, and the name below it that a path leads to."""

    __slots__ = ("folder", "missing", "name")

    def __init__(self, folder: int, name: str, missing: tuple[str, ...]) -> None:
        self.folder = folder
        self.name = name
        """The last name, never a link. Empty if the path is the folder itself."""
        self.missing = missing
        """Folders between `folder` and `name` that do not exist yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)

    def open(self, flags: int, mode: int = 0) -> int:
        if self.missing:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), self.name)
        return os.open(self.name or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.folder)


def resolve_parent(
    root: int, parts: tuple[str, ...], reroot: _Reroot | None, spelled: str, *, past_files: bool = False
) -> ResolvedParent:
    """Finds where `parts`, names and `..`, lead below an open root.

    Links are followed within the roots, or not at all if `reroot` is None. With `past_files`, a file in the place of a
    folder counts as a missing folder. Otherwise it is an error.
    """
    walk = _PathWalk(root, parts, reroot, spelled, past_files=past_files)
    try:
        while walk.pending:
            parent = walk.step()
            if parent is not None:
                return parent
        return walk.end()
    finally:
        walk.close()


class _PathWalk:
    """Resolves a path one name at a time, each relative to the descriptor of the folder before it.

    No system call follows a link. The walk reads each link and walks its target in turn, so a concurrent rename cannot
    lead it out of the roots.
    """

    def __init__(
        self, root: int, parts: tuple[str, ...], reroot: _Reroot | None, spelled: str, *, past_files: bool
    ) -> None:
        self.folders = [os.dup(root)]
        self.pending = list(reversed(parts))
        self.reroot = reroot
        self.spelled = spelled
        self.past_files = past_files
        self.links = 0

    def step(self) -> ResolvedParent | None:
        name = self.pending.pop()
        if name == "..":
            self._go_up()
        elif not self.pending:
            return self._take_last(name)
        elif not self._go_down(name):
            return self._build_parent(self.pending[0], (name, *reversed(self.pending[1:])))
        return None

    def end(self) -> ResolvedParent:
        return self._build_parent("", ())

    def close(self) -> None:
        while self.folders:
            os.close(self.folders.pop())

    def _build_parent(self, name: str, missing: tuple[str, ...]) -> ResolvedParent:
        if ".." in (*missing, name):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), self.spelled)
        return ResolvedParent(self.folders.pop(), name, missing)

    def _go_up(self) -> None:
        if len(self.folders) == 1:
            self._leave_root()
        else:
            os.close(self.folders.pop())

    def _leave_root(self) -> None:
        """Goes up from a root. The names that follow may lead into another root, never to a folder between them."""
        above = [part for part in find_descriptor_path(self.folders[0]).split("/") if part][:-1]
        while self.pending and self.pending[-1] == "..":
            self.pending.pop()
            above = above[:-1]
        self.pending = list(reversed(self._enter_root((*above, *reversed(self.pending)), up=True)))

    def _go_down(self, name: str) -> bool:
        """Enters a folder. False if the folder is missing and could be made."""
        try:
            self.folders.append(os.open(name, ENTER_FOLDER, dir_fd=self.folders[-1]))
        except FileNotFoundError:
            return False
        except OSError as error:
            # O_NOFOLLOW on a link reports ELOOP or, with O_DIRECTORY, ENOTDIR.
            if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
                raise
            if not self._follow_link(name):
                if not self.past_files:
                    raise
                return False
        return True

    def _take_last(self, name: str) -> ResolvedParent | None:
        if self._follow_link(name):
            return None if self.pending else self.end()
        return self._build_parent(name, ())

    def _follow_link(self, name: str) -> bool:
        """Replaces the name of a link by the names in its target. False if the name is no link."""
        if self.reroot is None:
            return False
        try:
            target = os.readlink(name, dir_fd=self.folders[-1])
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return False
            raise
        self.links += 1
        if self.links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self.spelled)
        parts = tuple(part for part in target.split("/") if part not in {"", "."})
        self.pending += reversed(self._enter_root(parts, up=False) if target.startswith("/") else parts)
        return True

    def _enter_root(self, parts: tuple[str, ...], *, up: bool) -> tuple[str, ...]:
        """Starts again in the root that holds an absolute path, and returns the names below that root."""
        found = self.reroot(parts, up) if self.reroot is not None else None
        if found is None:
            raise build_outside_error(self.spelled)
        self.close()
        self.folders.append(os.dup(found[0]))
        return found[1]


class NewFolders:
    """Creates the missing folders of a new file, and removes them again unless the file got there."""

    def __init__(self, folder: int, names: tuple[str, ...]) -> None:
        self._outer: list[tuple[int, str]] = []
        self.innermost = os.dup(folder)
        self._keep = False
        try:
            for name in names:
                self._enter(name)
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self.keep()
        self.close()

    def keep(self) -> None:
        self._keep = True

    def close(self) -> None:
        """Closes the descriptors, innermost first."""
        os.close(self.innermost)
        for outer, name in reversed(self._outer):
            if not self._keep:
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=outer)
            os.close(outer)

    def _enter(self, name: str) -> None:
        is_new = True
        try:
            os.mkdir(name, dir_fd=self.innermost)
        except FileExistsError:
            is_new = False
        try:
            inner = os.open(name, LIST_FOLDER, dir_fd=self.innermost)
        except OSError:
            if is_new:
                os.rmdir(name, dir_fd=self.innermost)
            raise
        if is_new:
            self._outer.append((self.innermost, name))
        else:
            os.close(self.innermost)
        self.innermost = inner
