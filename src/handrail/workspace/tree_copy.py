"""Copies a workspace for replay."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice

import msgspec

from handrail.protocol.errors import ToolError
from handrail.workspace.resolve import READ_FILE

_MAX_FILES = 500_000


class CopyResult(msgspec.Struct, frozen=True):
    files: int
    left_out: tuple[str, ...]
    """Relative paths that could not be read, or are neither file, folder nor link."""


@contextmanager
def make_copy_folder(source: str, keep: str | None = None) -> Generator[str]:
    """Makes a new folder for a copy of another: temporary, or at the path `keep`.

    ToolError if that path exists or is inside `source`.
    """
    if keep is not None:
        outer = os.path.realpath(source)
        if os.path.commonpath((outer, os.path.realpath(keep))) == outer:
            message = f"{keep} is in the folder to copy. Name a new folder outside it (--keep)."
            raise ToolError("CONFLICT", message)
        try:
            os.makedirs(keep, mode=0o700)
        except FileExistsError:
            raise ToolError("CONFLICT", f"{keep} already exists; name a new folder.") from None
        yield os.path.realpath(keep)
        return
    folder = tempfile.mkdtemp(prefix="handrail-")
    try:
        yield folder
    finally:
        _remove_tree(folder)


def copy_tree(source: str, target: str) -> CopyResult:
    """Copies files, folders and links. No link is followed. ToolError if there are too many files."""
    os.makedirs(target, mode=0o700, exist_ok=True)
    count, left_out, pending = 0, list[str](), [""]
    modes: dict[str, int] = {}
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(source, folder)) as scan:
                entries = list(islice(scan, _MAX_FILES + 1))
        except OSError:  # unreadable, or its path is too long
            left_out.append(folder or ".")
            continue
        count += len(entries)
        if count > _MAX_FILES:
            raise ToolError("LIMIT_EXCEEDED", f"The workspace has more than {_MAX_FILES} files. None was used.")
        for entry in entries:
            name = os.path.join(folder, entry.name)
            copy = os.path.join(target, name)
            try:
                if entry.is_dir(follow_symlinks=False):
                    mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
                    os.mkdir(copy, 0o700)
                    modes[copy] = mode  # set at the end, since its files are written first
                    pending.append(name)
                else:
                    _copy_file(entry, copy)
            except OSError:
                left_out.append(name)
    for copy in reversed(modes):
        os.chmod(copy, modes[copy])
    return CopyResult(count, tuple(sorted(left_out)))


def _copy_file(entry: "os.DirEntry[str]", target: str) -> None:
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), target)
        return
    if not entry.is_file(follow_symlinks=False):
        raise OSError(errno.ENOTSUP, "neither file, folder nor link")
    # READ_FILE does not follow a link or wait for a FIFO that took the file's place.
    with open(os.open(entry.path, READ_FILE), "rb") as reader, open(target, "xb") as writer:
        status = os.fstat(reader.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ENOTSUP, "no longer a file")
        shutil.copyfileobj(reader, writer, 1 << 20)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.chmod(target, stat.S_IMODE(status.st_mode))


def _remove_tree(folder: str) -> None:
    """Removes a tree, even if folders in it are closed to their owner."""
    for outer, names, _ in os.walk(folder):
        for path in (os.path.join(outer, name) for name in names):
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
