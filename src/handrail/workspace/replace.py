"""Writes a file so that anybody sees the old bytes or the new, and never overwrites bytes nobody looked at."""

import contextlib
import os
import stat
from collections.abc import Callable

from handrail.workspace.content import Content, fill
from handrail.workspace.current import FileSnapshot
from handrail.workspace.in_place import WriteResult, write_through
from handrail.workspace.swapping import Away, build_swap_name, discard, swap_in, unlink

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace(
    folder: int,
    name: str,
    new: Content,
    before: FileSnapshot | None,
    *,
    temporary: str,
    path: str,
    mode: int | None = None,
) -> WriteResult:
    """Puts new bytes in the place of `before`, or creates the file; CONFLICT when something else is there by now.

    The caller holds the file's lock: this guards against programs that know of none, not against itself.
    """
    if before is not None and before.status.st_nlink > 1:
        return write_through(folder, name, new, before, path, mode)
    return put_instead(folder, name, new, before, temporary=temporary, path=path, mode=mode)


def put_instead(
    folder: int,
    name: str,
    new: Content,
    before: FileSnapshot | None,
    *,
    temporary: str,
    path: str,
    mode: int | None = None,
    flush: bool = True,
    dress: Callable[[int], None] | None = None,
    away: Away = unlink,
) -> WriteResult:
    """The same, as a file of its own even where `before` has other names: those keep the old bytes.

    `flush`: wait until the bytes are on the disk. `dress`: gives the open file what else it is to have.
    """
    descriptor = os.open(temporary, _NEW, 0o666 if before is None else 0o600, dir_fd=folder)
    created = os.fstat(descriptor)
    try:
        try:
            fill(descriptor, new.pieces())
            if flush:
                _start_writing(descriptor)
            kept = _take_over(descriptor, created, folder, name, before.status) if before is not None else None
            if dress is not None:
                dress(descriptor)
            if mode is not None or kept is not None:
                os.fchmod(descriptor, mode if mode is not None else kept or 0)  # last: chown clears bits of it
            if flush:
                os.fsync(descriptor)
            own = FileSnapshot(os.fstat(descriptor), new.hash, None)
        finally:
            os.close(descriptor)
        if before is not None:
            ready = build_swap_name(temporary, own.hash, before.hash)
            os.rename(temporary, ready, src_dir_fd=folder, dst_dir_fd=folder)
            temporary = ready
        swap_in(folder, temporary, name, before, own, path, away)
    except BaseException:
        discard(folder, temporary, created)
        raise
    return WriteResult(new.hash, new.size, stat.S_IMODE(own.status.st_mode))


def _start_writing(descriptor: int) -> None:
    """Linux takes this for a sign to begin to write, and does not wait for the end; others may ignore it."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _take_over(descriptor: int, created: os.stat_result, folder: int, name: str, status: os.stat_result) -> int:
    """Owner and extended attributes of the file that is replaced; the mode that it is to have."""
    mode = stat.S_IMODE(status.st_mode)
    is_ours = (created.st_uid, created.st_gid) == (status.st_uid, status.st_gid)
    if not is_ours and not _give(descriptor, status.st_uid, status.st_gid):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # they lent the rights of an owner that it has no longer
        _give(descriptor, -1, status.st_gid)
    if hasattr(os, "listxattr"):
        _copy_attributes(descriptor, folder, name)
    return mode


def _give(descriptor: int, user: int, group: int) -> bool:
    try:
        os.fchown(descriptor, user, group)
    except PermissionError:
        return False
    return True


def _copy_attributes(descriptor: int, folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        source = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            for attribute in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)
