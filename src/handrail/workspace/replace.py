"""Writes a file so that anybody sees the old bytes or the new, and never overwrites bytes nobody looked at."""

import contextlib
import errno
import os
import stat

from handrail.kernel.rename import exchange, rename_new
from handrail.protocol.error import ToolError
from handrail.workspace.content import Content, fill
from handrail.workspace.current import DIGITS, Current, changed, is_still
from handrail.workspace.in_place import Written, write_through

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SWAPS = 100
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


def replace(
    folder: int, name: str, new: Content, before: Current | None, *, temporary: str, path: str, mode: int | None = None
) -> Written:
    """Puts new bytes in the place of `before`, or creates the file; CONFLICT when something else is there by now.

    The caller holds the file's lock: this guards against programs that know of none, not against itself.
    """
    if before is not None and before.status.st_nlink > 1:
        return write_through(folder, name, new, before, path, mode)
    descriptor = os.open(temporary, _NEW, 0o666 if before is None else 0o600, dir_fd=folder)
    created = os.fstat(descriptor)
    try:
        try:
            fill(descriptor, new.pieces())
            _start_writing(descriptor)
            if before is not None:
                _take_over(descriptor, folder, name, before.status)
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
            own = Current(os.fstat(descriptor), new.hash, None)
        finally:
            os.close(descriptor)
        if before is not None:
            temporary = _made_ready(folder, temporary, own, before)
        _put(folder, temporary, name, before, own, path)
    except BaseException:
        _discard(folder, temporary, created)
        raise
    return Written(new.hash, new.size, stat.S_IMODE(own.status.st_mode))


def _made_ready(folder: int, temporary: str, own: Current, before: Current) -> str:
    """Gives the file the name under which it is swapped: it says what may be found there if we die in the middle."""
    ready = f"{temporary}-{own.hash[:DIGITS]}-{before.hash[:DIGITS]}"
    os.rename(temporary, ready, src_dir_fd=folder, dst_dir_fd=folder)
    return ready


def _start_writing(descriptor: int) -> None:
    """Linux takes this for a sign to begin to write, and does not wait for the end; others may ignore it."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _take_over(descriptor: int, folder: int, name: str, status: os.stat_result) -> None:
    """Owner, extended attributes and mode of the file that is replaced; the mode last, as chown clears bits of it."""
    mode = stat.S_IMODE(status.st_mode)
    if not _give(descriptor, status.st_uid, status.st_gid):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # they lent the rights of an owner that it has no longer
        _give(descriptor, -1, status.st_gid)
    if hasattr(os, "listxattr"):
        _copy_attributes(descriptor, folder, name)
    os.fchmod(descriptor, mode)


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


def _put(folder: int, temporary: str, name: str, before: Current | None, own: Current, path: str) -> None:
    if before is None:
        _put_new(folder, temporary, name, path)
        return
    if not _looks_like(folder, name, before):
        _verify(folder, name, before, path)  # so that hardly anybody ever sees a write that is taken back
    try:
        exchange(folder, temporary, name)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise changed(path) from None
        if error.errno not in _UNSUPPORTED:
            raise
        _verify(folder, name, before, path)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    # What the swap took out is what was really there: only now is it certain that nothing unseen is lost.
    if not is_still(folder, temporary, before):
        raise _taken_back(folder, temporary, name, own, path)
    os.unlink(temporary, dir_fd=folder)


def _taken_back(folder: int, temporary: str, name: str, own: Current, path: str) -> ToolError:
    """Undoes the swap. Whoever put something there meanwhile has the last word: what comes out is put back in, until
    it is what we put in ourselves."""
    placed = own.status
    with contextlib.suppress(FileNotFoundError):  # removed by then: that, too, is the last word
        for _ in range(_SWAPS):
            held = _status(folder, temporary)
            exchange(folder, temporary, name)
            untouched = os.path.samestat(_status(folder, temporary), placed)
            if untouched and (placed is not own.status or is_still(folder, temporary, own)):
                break
            placed = held
    if is_still(folder, temporary, own):
        return changed(path)
    # Not ours to delete: who replaced it may have seen our file there instead.
    return ToolError("CONFLICT", f"{changed(path).message} What was there in between is kept as {temporary}.")


def _discard(folder: int, temporary: str, created: os.stat_result) -> None:
    """Removes the unfinished file: only ever our own."""
    with contextlib.suppress(OSError):
        if os.path.samestat(_status(folder, temporary), created):
            os.unlink(temporary, dir_fd=folder)


def _put_new(folder: int, temporary: str, name: str, path: str) -> None:
    try:
        rename_new(folder, temporary, name)
    except FileExistsError:
        raise changed(path) from None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _link_new(folder, temporary, name, path)


def _link_new(folder: int, temporary: str, name: str, path: str) -> None:
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise changed(path) from None
    os.unlink(temporary, dir_fd=folder)


def _verify(folder: int, name: str, before: Current, path: str) -> None:
    if not is_still(folder, name, before):
        raise changed(path)


def _looks_like(folder: int, name: str, known: Current) -> bool:
    """Whether a name seems to have the file that we know: cheap, and no proof."""
    try:
        now, then = _status(folder, name), known.status
    except OSError:
        return False
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (then.st_ino, then.st_size, then.st_mtime_ns)


def _status(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)
