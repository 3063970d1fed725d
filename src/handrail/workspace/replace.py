"""Writes a file so that anybody sees the old bytes or the new, and never overwrites bytes nobody looked at."""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable

import msgspec

from handrail.kernel.rename import exchange, rename_new
from handrail.protocol.error import ToolError
from handrail.workspace.errors import clipped
from handrail.workspace.text import SAMPLE

_DIGITS = 16
"""Of a hash, in a name."""
_CHUNK = 1 << 20
_COMPARED = 1 << 16
"""Bytes compared at a time: so few that they stay in the cache."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SWAPS = 100
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


class Current(msgspec.Struct, frozen=True):
    """The bytes a write is about to replace."""

    status: os.stat_result
    hash: str
    data: bytes | None
    """None above the limit that was asked for."""
    start: bytes = b""
    """The first bytes, however many there are."""


class Written(msgspec.Struct, frozen=True):
    """How the new bytes got there."""

    hash: str
    size: int
    mode: int
    in_place: bool = False


class Content(msgspec.Struct, frozen=True):
    """Bytes that are to be written, at hand or read piece by piece."""

    hash: str
    size: int
    pieces: Callable[[], Iterable[bytes]]


def content_of(data: bytes) -> Content:
    """Bytes that are at hand."""
    return Content(hashlib.sha256(data).hexdigest(), len(data), lambda: (data,))


def current(folder: int, name: str, keep: int) -> Current | None:
    """The file as it is now, its bytes kept up to a size; None when there is none."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), name)
        return _contents(descriptor, status, keep)
    finally:
        os.close(descriptor)


def replace(
    folder: int, name: str, new: Content, before: Current | None, *, temporary: str, path: str, mode: int | None = None
) -> Written:
    """Puts new bytes in the place of `before`, or creates the file; CONFLICT when something else is there by now.

    The caller holds the file's lock: this guards against programs that know of none, not against itself.
    """
    if before is not None and before.status.st_nlink > 1:
        return _write_through(folder, name, new, before, path)
    descriptor = os.open(temporary, _NEW, 0o666 if before is None else 0o600, dir_fd=folder)
    created = os.fstat(descriptor)
    try:
        try:
            _fill(descriptor, new.pieces())
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
    ready = f"{temporary}-{own.hash[:_DIGITS]}-{before.hash[:_DIGITS]}"
    os.rename(temporary, ready, src_dir_fd=folder, dst_dir_fd=folder)
    return ready


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
        now = current(folder, name, 0)
        return now is not None and now.hash[:_DIGITS] in known
    except OSError:
        return (link_hash(folder, name) or "")[:_DIGITS] in known


def link_hash(folder: int, name: str) -> str | None:
    """The hash of a link's target; None when it is no link."""
    try:
        return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()
    except OSError:
        return None


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


def _contents(descriptor: int, status: os.stat_result, keep: int) -> Current:
    if status.st_size <= keep:
        # In one piece, as the file most likely is: one byte more than its size shows that it did not grow.
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size and not os.read(descriptor, 1):
            return Current(status, hashlib.sha256(data).hexdigest(), data, data[:SAMPLE])
        os.lseek(descriptor, 0, os.SEEK_SET)
    digest, kept, size, start = hashlib.sha256(), bytearray(), 0, b""
    while chunk := os.read(descriptor, _CHUNK):
        digest.update(chunk)
        start = start or chunk[:SAMPLE]
        size += len(chunk)
        if size <= keep:
            kept += chunk
    return Current(status, digest.hexdigest(), bytes(kept) if size <= keep else None, start)


def _fill(descriptor: int, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        view = memoryview(piece)
        while view:
            view = view[os.write(descriptor, view) :]


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


def is_still(folder: int, name: str, known: Current) -> bool:
    """Whether a name has exactly the file and the bytes that we know."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), known.status) and _holds(descriptor, known)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _holds(descriptor: int, known: Current) -> bool:
    """Whether an open file has the bytes that we know: compared where they are at hand, as that is quicker."""
    if known.data is None:
        return _contents(descriptor, known.status, 0).hash == known.hash
    at = 0
    while chunk := os.read(descriptor, _COMPARED):
        if not known.data.startswith(chunk, at):
            return False
        at += len(chunk)
    return at == len(known.data)


def _looks_like(folder: int, name: str, known: Current) -> bool:
    """Whether a name seems to have the file that we know: cheap, and no proof."""
    try:
        now, then = _status(folder, name), known.status
    except OSError:
        return False
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (then.st_ino, then.st_size, then.st_mtime_ns)


def _status(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def changed(path: str) -> ToolError:
    """The refusal when somebody else was faster."""
    return ToolError(
        "CONFLICT",
        f"{clipped(path)} changed while it was being written. Nothing was written. Read it, then call again.",
    )


def _write_through(folder: int, name: str, new: Content, before: Current, path: str) -> Written:
    """A file with several names is written in place, so that all of them see it; restored if that fails."""
    if before.data is None:
        raise ToolError(
            "LIMIT_EXCEEDED", f"{clipped(path)} has several hard links and is too large to be written safely."
        )
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        # What is looked at is the file that is open, not the name: nobody can put another one under it.
        status = os.fstat(descriptor)
        if not os.path.samestat(status, before.status) or not _holds(descriptor, before):
            raise changed(path)
        try:
            _reserve(descriptor, new.size, len(before.data))
            _overwrite(descriptor, new.pieces(), new.size)
        except OSError:
            _overwrite(descriptor, (before.data,), len(before.data))
            raise
    finally:
        os.close(descriptor)
    return Written(new.hash, new.size, stat.S_IMODE(before.status.st_mode), in_place=True)


def write_in_place(folder: int, name: str, data: bytes) -> None:
    """Writes through all names of a file; for who knows that what is there is to go."""
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        _overwrite(descriptor, (data,), len(data))
    finally:
        os.close(descriptor)


def _reserve(descriptor: int, size: int, before: int) -> None:
    """Finds out that the disk is full before the first byte is overwritten, where the file system can tell."""
    if size > before and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise


def _overwrite(descriptor: int, pieces: Iterable[bytes], size: int) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _fill(descriptor, pieces)
    os.ftruncate(descriptor, size)
    os.fsync(descriptor)


def sync_folder(folder: int) -> None:
    """Makes the new name survive power loss, where the folder can be opened for it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
