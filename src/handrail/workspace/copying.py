"""Copies a whole workspace, for who wants to try something on a copy of it."""

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from handrail.protocol.error import ToolError

MOST_FILES = 500_000


@contextmanager
def place_for_copy(source: str, keep: str | None = None) -> Generator[str]:
    """A new folder for a copy of another: a temporary one that is removed at the end, or one to keep. ToolError where
    that is there already, or lies in what is to be copied."""
    _refuse_inside(source, tempfile.gettempdir() if keep is None else keep)
    if keep is not None:
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
    """A copy that lies in what is copied would be copied too, and the copy of it, and so on."""
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


class Copied(msgspec.Struct, frozen=True):
    """What came of it."""

    files: int
    left_out: tuple[str, ...]
    """What is neither file nor folder nor link, or could not be read; relative."""


def copy_tree(source: str, target: str) -> Copied:
    """Copies files, folders and links, each as it is: no link is followed. ToolError where it is too much."""
    left_out: list[str] = []
    files = 0
    waiting = [""]
    os.makedirs(target, mode=0o700, exist_ok=True)
    closed: list[tuple[str, int]] = []
    while waiting:
        relative = waiting.pop()
        entries = _entries(os.path.join(source, relative))
        if entries is None:
            left_out.append(relative or ".")
        for entry in entries or ():
            name = os.path.join(relative, entry.name)
            files += 1
            if files > MOST_FILES:
                raise ToolError("LIMIT_EXCEEDED", f"The workspace has more than {MOST_FILES} files. None was used.")
            if entry.is_dir(follow_symlinks=False):
                os.mkdir(os.path.join(target, name), 0o700)
                closed.append((name, stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)))
                waiting.append(name)
            elif not _copied(entry, os.path.join(target, name)):
                left_out.append(name)
    for name, mode in reversed(closed):
        os.chmod(os.path.join(target, name), mode)
    return Copied(files, tuple(sorted(left_out)))


def _entries(folder: str) -> "list[os.DirEntry[str]] | None":
    """What is in a folder; None where it cannot be looked into, or is gone."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return None


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
