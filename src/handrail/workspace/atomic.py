"""Changes names in a folder atomically, without destroying a file that the caller has not seen.

Other processes see the old file or the new one. A write swaps the new file with the old one, then compares the
replaced file with the caller's snapshot. If they differ, it swaps back.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable

from handrail.kernel.files import exchange, rename_new, write_all
from handrail.protocol.digest import short_sha256
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import build_conflict_error
from handrail.workspace.file_state import Content, FileSnapshot, hash_link, read_file_snapshot
from handrail.workspace.ignore import TEMPORARY_PREFIX
from handrail.workspace.in_place import UNSUPPORTED, WriteResult, write_through
from handrail.workspace.resolve import LIST_FOLDER, NEW_FILE, READ_FILE, closing_descriptor
from handrail.workspace.roots import clip_path

Away = Callable[[int, str], None]
"""Disposes of a file that was taken out, given its folder and name. The default is to unlink it."""

_MAX_SWAPS = 100
_HASH_DIGITS = 16
"""Digits of a hash in the name of an unfinished file."""
_ZEROS = bytes(1 << 16)
_OVERLAY_ATTRIBUTES = "user.overlay."


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
    """Writes a file over `before`, or creates it. CONFLICT if something else is there by now.

    A file with several hard links is written in place. The caller holds handrail's lock on the file. This guards
    against programs that know of no lock.
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
    away: Away | None = None,
) -> WriteResult:
    """Puts a new file in the place of `before`, whose other names keep the old bytes.

    `flush`: waits until the bytes are on the disk. `dress`: sets further attributes of the open file.
    """
    descriptor = os.open(temporary, NEW_FILE, 0o666 if before is None else 0o600, dir_fd=folder)
    created = os.fstat(descriptor)
    try:
        try:
            _write_pieces(descriptor, new.pieces())
            if flush:
                _start_writeback(descriptor)
            old_mode = _copy_metadata(descriptor, created, folder, name, before.status) if before is not None else None
            if dress is not None:
                dress(descriptor)
            if mode is not None or old_mode is not None:
                os.fchmod(descriptor, mode if mode is not None else old_mode or 0)  # last: chown clears mode bits
            if flush:
                os.fsync(descriptor)
            own = FileSnapshot(new.hash, new.size, status=os.fstat(descriptor))
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
    away: Away | None = None,
) -> None:
    """Moves a file of an overlay, given by folder and name, into the place of `before`. CONFLICT as in `replace`.

    Nothing is copied, so its times and attributes stay. OSError EXDEV, without any change, across file systems.
    """
    status = _prepare_source(source, mode)
    if before is None:
        _move_new(source, folder, name, temporary, path)
        return
    own = FileSnapshot(digest, status.st_size, status=status)
    ready = build_swap_name(temporary, digest, before.hash)
    os.rename(source[1], ready, src_dir_fd=source[0], dst_dir_fd=folder)
    try:
        swap_in(folder, ready, name, before, own, path, away)
    except BaseException:
        discard(folder, ready, status)
        raise


def put_link(
    folder: int, name: str, target: bytes, hashes: tuple[str, str | None], *, temporary: str, path: str
) -> None:
    """Makes a symbolic link, or changes one. `hashes`: of the new target, and of the one that is there now."""
    new, old = hashes
    if old is None:
        _make_link(folder, name, target, path)
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
        _make_link(folder, name, target, path)
        return
    if hash_link(folder, ready) != old:
        raise _undo_link_swap(folder, ready, name, new, path)
    os.unlink(ready, dir_fd=folder)


def remove_file(
    folder: int, name: str, before: FileSnapshot, *, temporary: str, path: str, away: Away | None = None
) -> None:
    """Removes a file. CONFLICT, and nothing is removed, if it is not `before` any more."""
    aside = _put_aside(folder, name, f"{temporary}-gone-{before.hash[:_HASH_DIGITS]}", path)
    # Only the file that was put aside is certainly the one to remove: a check before could be outdated.
    if not before.is_unchanged_at(folder, aside):
        raise _restore_aside(folder, aside, name, path)
    (away or _unlink)(folder, aside)


def remove_link(folder: int, name: str, target: str, *, temporary: str, path: str) -> None:
    """Removes a symbolic link whose target has this hash."""
    aside = _put_aside(folder, name, f"{temporary}-gone-{target[:_HASH_DIGITS]}", path)
    if hash_link(folder, aside) != target:
        raise _restore_aside(folder, aside, name, path)
    os.unlink(aside, dir_fd=folder)


def remove_folder(folder: int, name: str) -> bool:
    """Removes a folder if it is empty, and returns whether it was."""
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            return False
        raise
    return True


def sync_folder(folder: int) -> None:
    """Makes new names in a folder survive a power loss, if the folder can be listed."""
    with contextlib.suppress(OSError), closing_descriptor(os.open(".", LIST_FOLDER, dir_fd=folder)) as descriptor:
        os.fsync(descriptor)


def build_temporary_name(session_id: str, call_id: str) -> str:
    """The name of a call's unfinished file, so that it can be found after a crash.

    It is a hash, since an id is any text: it may hold a slash, be too long, or be another session's too.
    """
    return f"{TEMPORARY_PREFIX}{short_sha256(f'{session_id} {call_id}'.encode()).hexdigest()[:32]}"


def build_swap_name(temporary: str, new: str, old: str) -> str:
    """The name under which a file is swapped. Its hashes tell `remove_unfinished` which contents are ours."""
    return f"{temporary}-{new[:_HASH_DIGITS]}-{old[:_HASH_DIGITS]}"


def remove_unfinished(folder: int, temporary: str) -> None:
    """Removes the files that a killed write left: the new file, or the old one that it had taken out.

    Any other content comes from another program, just before the swap. It is the only copy, so it stays.
    """
    with closing_descriptor(os.open(".", LIST_FOLDER, dir_fd=folder)) as descriptor:
        names = os.listdir(descriptor)
    for name in names:
        hashes = name.removeprefix(f"{temporary}-").split("-")
        if name == temporary or (name.startswith(f"{temporary}-") and _has_hash(folder, name, hashes)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)


def _has_hash(folder: int, name: str, hashes: list[str]) -> bool:
    try:
        file = read_file_snapshot(folder, name, 0)
        return file is not None and file.hash[:_HASH_DIGITS] in hashes
    except OSError:
        return (hash_link(folder, name) or "")[:_HASH_DIGITS] in hashes


def swap_in(
    folder: int,
    temporary: str,
    name: str,
    before: FileSnapshot | None,
    own: FileSnapshot,
    path: str,
    away: Away | None = None,
) -> None:
    """Gives a finished file its name, in the place of `before`. CONFLICT if something else is there by now."""
    if before is None:
        _move_new((folder, temporary), folder, name, temporary, path)
        return
    if not _has_same_status(folder, name, before):
        _check_unchanged(folder, name, before, path)  # so that a swap is rarely undone, which others could see
    try:
        exchange(folder, temporary, name)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise build_conflict_error(path) from None
        if error.errno not in UNSUPPORTED:
            raise
        _check_unchanged(folder, name, before, path)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    # Only the file that the swap took out is certainly the one that was replaced.
    if not before.is_unchanged_at(folder, temporary):
        raise _undo_swap(folder, temporary, name, own, path)
    (away or _unlink)(folder, temporary)


def discard(folder: int, temporary: str, created: os.stat_result) -> None:
    """Removes an unfinished file, if it is still the one that we created."""
    with contextlib.suppress(OSError):
        if os.path.samestat(_read_status(folder, temporary), created):
            os.unlink(temporary, dir_fd=folder)


def open_source(source: tuple[int, str]) -> int:
    """Opens a file of an overlay for reading, even if its mode forbids that to its owner."""
    folder, name = source
    try:
        return os.open(name, READ_FILE, dir_fd=folder)
    except PermissionError:
        status = _read_status(folder, name)
        if not stat.S_ISREG(status.st_mode):
            raise
        os.chmod(name, stat.S_IMODE(status.st_mode) | stat.S_IRUSR, dir_fd=folder)
        return os.open(name, READ_FILE, dir_fd=folder)


def _undo_swap(folder: int, temporary: str, name: str, own: FileSnapshot, path: str) -> ToolError:
    """Swaps back until our own file comes out. A file that others put there meanwhile is newer, and goes back in."""
    expected = own.status
    with contextlib.suppress(FileNotFoundError):  # another program removed the file, which counts
        for _ in range(_MAX_SWAPS):
            put_back = _read_status(folder, temporary)
            exchange(folder, temporary, name)
            untouched = os.path.samestat(_read_status(folder, temporary), expected)
            if untouched and (expected is not own.status or own.is_unchanged_at(folder, temporary)):
                break
            expected = put_back
    if own.is_unchanged_at(folder, temporary):
        return build_conflict_error(path)
    # The program that replaced this file may have seen ours in its place, so it is not ours to delete.
    return _add_kept_name(build_conflict_error(path), temporary)


def _undo_link_swap(folder: int, ready: str, name: str, new: str, path: str) -> ToolError:
    with contextlib.suppress(OSError):
        exchange(folder, ready, name)
    if hash_link(folder, ready) != new:
        return _add_kept_name(build_conflict_error(path), ready)
    os.unlink(ready, dir_fd=folder)
    return build_conflict_error(path)


def _put_aside(folder: int, name: str, aside: str, path: str) -> str:
    try:
        rename_new(folder, name, aside)
    except FileNotFoundError:
        raise _build_removal_error(path) from None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    return aside


def _restore_aside(folder: int, aside: str, name: str, path: str) -> ToolError:
    with contextlib.suppress(OSError):
        rename_new(folder, aside, name)
        return _build_removal_error(path)
    return _add_kept_name(_build_removal_error(path), aside)


def _build_removal_error(path: str) -> ToolError:
    return ToolError("CONFLICT", f"{clip_path(path)} changed while it was being removed. Nothing was removed.")


def _add_kept_name(error: ToolError, name: str) -> ToolError:
    return ToolError("CONFLICT", f"{error.message} The content in between was saved as {name}.")


def _move_new(source: tuple[int, str], folder: int, name: str, temporary: str, path: str) -> None:
    """Renames a file to a name that must be free."""
    try:
        rename_new(source[0], source[1], name, into=folder)
    except FileExistsError:
        raise build_conflict_error(path) from None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        os.rename(source[1], temporary, src_dir_fd=source[0], dst_dir_fd=folder)
        try:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise build_conflict_error(path) from None
        finally:
            os.unlink(temporary, dir_fd=folder)


def _make_link(folder: int, name: str, target: bytes, path: str) -> None:
    try:
        os.symlink(os.fsdecode(target), name, dir_fd=folder)
    except FileExistsError:
        raise build_conflict_error(path) from None


def _check_unchanged(folder: int, name: str, before: FileSnapshot, path: str) -> None:
    if not before.is_unchanged_at(folder, name):
        raise build_conflict_error(path)


def _has_same_status(folder: int, name: str, known: FileSnapshot) -> bool:
    """Whether a name seems to have a known file: cheap, and no proof."""
    try:
        now, then = _read_status(folder, name), known.status
    except OSError:
        return False
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (then.st_ino, then.st_size, then.st_mtime_ns)


def _unlink(folder: int, name: str) -> None:
    os.unlink(name, dir_fd=folder)


def _read_status(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _write_pieces(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Writes a new file. Long runs of zeros become holes."""
    ends_in_hole = False
    for piece in pieces:
        ends_in_hole = _write_piece(descriptor, piece, ends_in_hole=ends_in_hole)
    if ends_in_hole:
        os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR))


def _write_piece(descriptor: int, piece: bytes, *, ends_in_hole: bool) -> bool:
    """Writes bytes, and returns whether the file now ends in a hole."""
    view = memoryview(piece)
    if len(piece) < len(_ZEROS) or _ZEROS not in piece:
        write_all(descriptor, view)
        return ends_in_hole and not piece
    for start in range(0, len(piece), len(_ZEROS)):
        part = view[start : start + len(_ZEROS)]
        ends_in_hole = bytes(part) == _ZEROS
        if ends_in_hole:
            os.lseek(descriptor, len(part), os.SEEK_CUR)
        else:
            write_all(descriptor, part)
    return ends_in_hole


def _start_writeback(descriptor: int) -> None:
    """Linux takes this as a hint to start writing, and does not wait for the end. Other systems may ignore it."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _copy_metadata(descriptor: int, created: os.stat_result, folder: int, name: str, status: os.stat_result) -> int:
    """Copies owner and extended attributes of the replaced file, and returns the mode to set."""
    mode = stat.S_IMODE(status.st_mode)
    is_ours = (created.st_uid, created.st_gid) == (status.st_uid, status.st_gid)
    if not is_ours and not _change_owner(descriptor, status.st_uid, status.st_gid):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # these bits lend the rights of the owner, which changed
        _change_owner(descriptor, -1, status.st_gid)
    if hasattr(os, "listxattr"):
        _copy_attributes(descriptor, folder, name)
    return mode


def _change_owner(descriptor: int, user: int, group: int) -> bool:
    try:
        os.fchown(descriptor, user, group)
    except PermissionError:
        return False
    return True


def _copy_attributes(descriptor: int, folder: int, name: str) -> None:
    with contextlib.suppress(OSError), closing_descriptor(os.open(name, READ_FILE, dir_fd=folder)) as source:
        for attribute in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, attribute, os.getxattr(source, attribute))


def _prepare_source(source: tuple[int, str], mode: int | None) -> os.stat_result:
    """Removes the attributes of overlayfs from a file, sets its mode, and returns its status."""
    with closing_descriptor(open_source(source)) as descriptor:
        current = stat.S_IMODE(os.fstat(descriptor).st_mode)
        wanted = current if mode is None else mode
        attributes = [name for name in os.listxattr(descriptor) if name.startswith(_OVERLAY_ATTRIBUTES)]
        if attributes and not current & stat.S_IWUSR:
            current |= stat.S_IWUSR
            os.fchmod(descriptor, current)  # removing attributes needs write permission
        for name in attributes:
            with contextlib.suppress(OSError):
                os.removexattr(descriptor, name)
        if current != wanted:
            os.fchmod(descriptor, wanted)
        return os.fstat(descriptor)
