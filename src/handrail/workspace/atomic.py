"""Replaces, removes and links files atomically."""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable

from handrail.kernel.files import exchange, rename_new
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import (
    HASH_DIGITS,
    Content,
    FileSnapshot,
    build_conflict_error,
    fill,
    hash_link,
    is_unchanged,
    read_file_snapshot,
)
from handrail.workspace.ignore import TEMPORARY_PREFIX
from handrail.workspace.in_place import WriteResult, write_through
from handrail.workspace.resolve import LIST_FOLDER

# § [workspace.swapping] Gives a file that is ready its name, by swapping: what comes out is looked at, and goes
# § back unless it was seen.

_MAX_SWAPS = 100
UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
Away = Callable[[int, str], None]
"""Does away with a file that was taken out: folder and name."""


def unlink(folder: int, name: str) -> None:
    """Does away with it for good."""
    os.unlink(name, dir_fd=folder)


def build_swap_name(temporary: str, new: str, old: str) -> str:
    """The name under which a file is swapped: it says what may be found there if we die in the middle."""
    return f"{temporary}-{new[:HASH_DIGITS]}-{old[:HASH_DIGITS]}"


def swap_in(
    folder: int,
    temporary: str,
    name: str,
    before: FileSnapshot | None,
    own: FileSnapshot,
    path: str,
    away: Away = unlink,
) -> None:
    """Gives a file that is ready its name, in the place of `before`; CONFLICT when something else is there by now.

    `away`: what becomes of the file that was there.
    """
    if before is None:
        _put_new(folder, temporary, name, path)
        return
    if not _looks_like(folder, name, before):
        _verify(folder, name, before, path)  # so that hardly anybody ever sees a write that is taken back
    try:
        exchange(folder, temporary, name)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise build_conflict_error(path) from None
        if error.errno not in UNSUPPORTED:
            raise
        _verify(folder, name, before, path)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    # What the swap took out is what was really there: only now is it certain that nothing unseen is lost.
    if not is_unchanged(folder, temporary, before):
        raise _taken_back(folder, temporary, name, own, path)
    away(folder, temporary)


def _taken_back(folder: int, temporary: str, name: str, own: FileSnapshot, path: str) -> ToolError:
    """Undoes the swap. Whoever put something there meanwhile has the last word: what comes out is put back in, until
    it is what we put in ourselves."""
    placed = own.status
    with contextlib.suppress(FileNotFoundError):  # removed by then: that, too, is the last word
        for _ in range(_MAX_SWAPS):
            held = _status(folder, temporary)
            exchange(folder, temporary, name)
            untouched = os.path.samestat(_status(folder, temporary), placed)
            if untouched and (placed is not own.status or is_unchanged(folder, temporary, own)):
                break
            placed = held
    if is_unchanged(folder, temporary, own):
        return build_conflict_error(path)
    # Not ours to delete: who replaced it may have seen our file there instead.
    return ToolError(
        "CONFLICT", f"{build_conflict_error(path).message} What was there in between is kept as {temporary}."
    )


def discard(folder: int, temporary: str, created: os.stat_result) -> None:
    """Removes the unfinished file: only ever our own."""
    with contextlib.suppress(OSError):
        if os.path.samestat(_status(folder, temporary), created):
            os.unlink(temporary, dir_fd=folder)


def _put_new(folder: int, temporary: str, name: str, path: str) -> None:
    try:
        rename_new(folder, temporary, name)
    except FileExistsError:
        raise build_conflict_error(path) from None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        _link_new(folder, temporary, name, path)


def _link_new(folder: int, temporary: str, name: str, path: str) -> None:
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise build_conflict_error(path) from None
    os.unlink(temporary, dir_fd=folder)


def _verify(folder: int, name: str, before: FileSnapshot, path: str) -> None:
    if not is_unchanged(folder, name, before):
        raise build_conflict_error(path)


def _looks_like(folder: int, name: str, known: FileSnapshot) -> bool:
    """Whether a name seems to have the file that we know: cheap, and no proof."""
    try:
        now, then = _status(folder, name), known.status
    except OSError:
        return False
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (then.st_ino, then.st_size, then.st_mtime_ns)


def _status(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


# § [workspace.replace] Writes a file so that anybody sees the old bytes or the new, and never overwrites bytes
# § nobody looked at.

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


# § [workspace.removal] Removes a file, a link or a folder, but only the one that was looked at.


def remove_file(
    folder: int, name: str, before: FileSnapshot, *, temporary: str, path: str, away: Away = unlink
) -> None:
    """Removes a file; CONFLICT, and nothing is removed, when it is not the one that was looked at."""
    aside = _put_aside(folder, name, f"{temporary}-gone-{before.hash[:16]}", path)
    # Only what was put aside is certainly what was there: a check before could be outdated.
    if not is_unchanged(folder, aside, before):
        raise _brought_back(folder, aside, name, path)
    away(folder, aside)


def remove_link(folder: int, name: str, target: str, *, temporary: str, path: str) -> None:
    """Removes a link with a target of this hash."""
    aside = _put_aside(folder, name, f"{temporary}-gone-{target[:16]}", path)
    if hash_link(folder, aside) != target:
        raise _brought_back(folder, aside, name, path)
    os.unlink(aside, dir_fd=folder)


def remove_folder(folder: int, name: str) -> bool:
    """Removes a folder if it is empty; whether it was."""
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            return False
        raise
    return True


def _put_aside(folder: int, name: str, aside: str, path: str) -> str:
    try:
        rename_new(folder, name, aside)
    except FileNotFoundError:
        raise _changed(path) from None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    return aside


def _brought_back(folder: int, aside: str, name: str, path: str) -> ToolError:
    with contextlib.suppress(OSError):
        rename_new(folder, aside, name)
        return _changed(path)
    message = f"{_changed(path).message} What was there in between is kept as {aside}."
    return ToolError("CONFLICT", message)


def _changed(path: str) -> ToolError:
    return ToolError("CONFLICT", f"{clip_path(path)} changed while it was being removed. Nothing was removed.")


# § [workspace.links] Puts a link in the place of another, so that anybody sees the old one or the new.


def put_link(
    folder: int, name: str, target: bytes, hashes: tuple[str, str | None], *, temporary: str, path: str
) -> None:
    """Makes a link, or leads one elsewhere. `hashes`: of the new target, and of the one that is there now."""
    new, old = hashes
    if old is None:
        _make(folder, name, target, path)
        return
    ready = build_swap_name(temporary, new, old)
    os.symlink(os.fsdecode(target), ready, dir_fd=folder)
    try:
        exchange(folder, ready, name)
    except OSError as error:
        os.unlink(ready, dir_fd=folder)
        if error.errno not in UNSUPPORTED:
            raise build_conflict_error(path) from None
        remove_link(folder, name, old, temporary=temporary, path=path)
        _make(folder, name, target, path)
        return
    if hash_link(folder, ready) != old:
        raise _undo_link(folder, ready, name, new, path)
    os.unlink(ready, dir_fd=folder)


def _make(folder: int, name: str, target: bytes, path: str) -> None:
    try:
        os.symlink(os.fsdecode(target), name, dir_fd=folder)
    except FileExistsError:
        raise build_conflict_error(path) from None


def _undo_link(folder: int, ready: str, name: str, new: str, path: str) -> ToolError:
    with contextlib.suppress(OSError):
        exchange(folder, ready, name)
    if hash_link(folder, ready) == new:
        os.unlink(ready, dir_fd=folder)
        return build_conflict_error(path)
    return ToolError("CONFLICT", f"{build_conflict_error(path).message} What was there in between is kept as {ready}.")


# § [workspace.taking] Takes a file of an overlay into the workspace, as it is: nothing is copied, and its time and
# § attributes stay.

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_OVERLAY = "user.overlay."
"""What overlayfs notes on files, for itself."""


def take(
    source: tuple[int, str],
    folder: int,
    name: str,
    digest: str,
    before: FileSnapshot | None,
    *,
    temporary: str,
    path: str,
    mode: int | None = None,
    away: Away = unlink,
) -> None:
    """Moves a file, given by its folder and name, into the place of `before`; CONFLICT when something else is there.

    OSError EXDEV, and nothing is changed, where it is on another file system.
    """
    status = _dressed(source, mode)
    if before is None:
        _move_new(source, folder, name, temporary, path)
        return
    own = FileSnapshot(status, digest, None)
    ready = build_swap_name(temporary, digest, before.hash)
    os.rename(source[1], ready, src_dir_fd=source[0], dst_dir_fd=folder)
    try:
        swap_in(folder, ready, name, before, own, path, away)
    except BaseException:
        discard(folder, ready, status)
        raise


def open_source(source: tuple[int, str]) -> int:
    """A descriptor for a file of an overlay, even where its owner may not read it."""
    folder, name = source
    try:
        return os.open(name, _READ, dir_fd=folder)
    except PermissionError:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            raise
        os.chmod(name, stat.S_IMODE(status.st_mode) | stat.S_IRUSR, dir_fd=folder)
        return os.open(name, _READ, dir_fd=folder)


def _dressed(source: tuple[int, str], mode: int | None) -> os.stat_result:
    """Takes away what overlayfs noted, and gives it its mode; what the file is then."""
    descriptor = open_source(source)
    try:
        is_now = stat.S_IMODE(os.fstat(descriptor).st_mode)
        meant = is_now if mode is None else mode
        notes = [name for name in os.listxattr(descriptor) if name.startswith(_OVERLAY)]
        if notes and not is_now & stat.S_IWUSR:
            is_now |= stat.S_IWUSR
            os.fchmod(descriptor, is_now)  # who may not write a file may not take notes from it either
        for name in notes:
            with contextlib.suppress(OSError):
                os.removexattr(descriptor, name)
        if is_now != meant:
            os.fchmod(descriptor, meant)
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _move_new(source: tuple[int, str], folder: int, name: str, temporary: str, path: str) -> None:
    try:
        rename_new(source[0], source[1], name, into=folder)
    except FileExistsError:
        raise build_conflict_error(path) from None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        os.rename(source[1], temporary, src_dir_fd=source[0], dst_dir_fd=folder)
        _link(folder, temporary, name, path)


def _link(folder: int, temporary: str, name: str, path: str) -> None:
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise build_conflict_error(path) from None
    finally:
        os.unlink(temporary, dir_fd=folder)


def sync_folder(folder: int) -> None:
    """Makes new names in a folder survive a power loss, if the folder can be listed."""
    with contextlib.suppress(OSError):
        descriptor = os.open(".", LIST_FOLDER, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# § [workspace.temporary] The names of our own unfinished files.


def build_temporary_name(session_id: str, call_id: str) -> str:
    """The name a call's unfinished file goes by: known, so that a crash leaves nothing that cannot be found.

    A hash, since an id is any text: it may hold a slash, be too long, or be another session's too.
    """
    return f"{TEMPORARY_PREFIX}{hashlib.sha256(f'{session_id} {call_id}'.encode()).hexdigest()[:32]}"


# § [workspace.unfinished] What a write that was cut off left, under a name that says what it is.


def remove_unfinished(folder: int, temporary: str) -> None:
    """Removes what a write that was cut off left: its own file, or the one it took the place of and had seen.

    Anything else was put there by another program just before the swap. It is the only copy, so it stays.
    """
    for found in _names(folder):
        known = found.removeprefix(f"{temporary}-").split("-")
        if found == temporary or (found.startswith(f"{temporary}-") and _starts(folder, found, known)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(found, dir_fd=folder)


def _names(folder: int) -> list[str]:
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)


def _starts(folder: int, name: str, known: list[str]) -> bool:
    try:
        now = read_file_snapshot(folder, name, 0)
        return now is not None and now.hash[:HASH_DIGITS] in known
    except OSError:
        return (hash_link(folder, name) or "")[:HASH_DIGITS] in known


# § [workspace.modes] Permission bits of files that are to be executable, or no longer.

_READ_BITS = 0o444
_STATUS = "/proc/self/status"


def build_executable_mode(mode: int | None, *, on: bool = True) -> int:
    """The mode with the right to execute for everybody who may read, or for nobody; None is that of a new file."""
    if mode is None:
        return (0o777 if on else 0o666) & ~_umask()
    return mode | (mode & _READ_BITS) >> 2 if on else mode & ~0o111


def _umask() -> int:
    """What new files are not given. To ask the system itself would change it for a moment, for all threads."""
    with contextlib.suppress(OSError, ValueError), open(_STATUS, encoding="utf-8") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.removeprefix("Umask:"), 8)
    return 0o077  # not known: for nobody else
