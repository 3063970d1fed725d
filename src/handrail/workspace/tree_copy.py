"""Copies a whole workspace, for who wants to try something on a copy of it."""

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from handrail.protocol.errors import ToolError

MAX_FILES = 500_000


@contextmanager
def make_copy_folder(source: str, keep: str | None = None) -> Generator[str]:
    """A new folder for a copy of another: a temporary one that is removed at the end, or one to keep. ToolError where
    that is there already, or lies in what is to be copied."""
    if keep is not None:
        _refuse_inside(source, keep)
        try:
            os.makedirs(keep, mode=0o700)
        except FileExistsError:
            raise ToolError("CONFLICT", f"{keep} is there already; name a folder that is not.") from None
        yield keep
        return
    folder = tempfile.mkdtemp(prefix="handrail-")
    try:
        yield folder
    finally:
        _remove(folder)


def _refuse_inside(source: str, place: str) -> None:
    """What is kept would lie in the way of whoever works there."""
    whole, part = os.path.realpath(source), os.path.realpath(place)
    if os.path.commonpath((whole, part)) == whole:
        message = f"{place} lies in the folder that is to be copied. Name a new folder outside of it (--keep)."
        raise ToolError("CONFLICT", message)


def _remove(folder: str) -> None:
    """With the folders in it that nobody may enter or change."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


class CopyResult(msgspec.Struct, frozen=True):
    """What came of it."""

    files: int
    left_out: tuple[str, ...]
    """What is neither file nor folder nor link, or could not be read; relative."""


def copy_tree(source: str, target: str) -> CopyResult:
    """Copies files, folders and links, each as it is: no link is followed. ToolError where it is too much."""
    os.makedirs(target, mode=0o700, exist_ok=True)
    copying = _Copying(source, target)
    while copying.waiting:
        copying.copy_folder(copying.waiting.pop())
    for name, mode in reversed(copying.made):
        os.chmod(os.path.join(target, name), mode)
    return CopyResult(copying.files, tuple(sorted(copying.left_out)))


class _Copying:
    def __init__(self, source: str, target: str) -> None:
        self._source, self._target = source, target
        self.waiting = [""]
        self.made: list[tuple[str, int]] = []
        """Folders, with the mode that each is to have in the end."""
        self.left_out: list[str] = []
        self.files = 0

    def copy_folder(self, relative: str) -> None:
        """Copies what is in a folder; those in it come later."""
        try:
            with os.scandir(os.path.join(self._source, relative)) as entries:
                for entry in entries:
                    self._copy(entry, os.path.join(relative, entry.name))
        except OSError:  # nobody may look into it, or its name is too long
            self.left_out.append(relative or ".")

    def _copy(self, entry: "os.DirEntry[str]", name: str) -> None:
        self.files += 1
        if self.files > MAX_FILES:
            raise ToolError("LIMIT_EXCEEDED", f"The workspace has more than {MAX_FILES} files. None was used.")
        target = os.path.join(self._target, name)
        if not entry.is_dir(follow_symlinks=False):
            if not _copied(entry, target):
                self.left_out.append(name)
            return
        try:
            status = entry.stat(follow_symlinks=False)
            os.mkdir(target, 0o700)
        except OSError:
            self.left_out.append(name)
            return
        self.made.append((name, stat.S_IMODE(status.st_mode)))
        self.waiting.append(name)


def _copied(entry: "os.DirEntry[str]", target: str) -> bool:
    try:
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
            return True
        if not entry.is_file(follow_symlinks=False):
            return False
        # By descriptor, so that what became a link or a pipe since is neither followed nor waited for.
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as reading, open(target, "xb") as writing:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return False
            shutil.copyfileobj(reading, writing, 1 << 20)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.chmod(target, stat.S_IMODE(status.st_mode))
    except OSError:
        return False
    return True
