"""Gives a file that is ready its name, by swapping: what comes out is looked at, and goes back unless it was seen."""

import contextlib
import errno
import os
from collections.abc import Callable

from handrail.kernel.rename import exchange, rename_new
from handrail.protocol.error import ToolError
from handrail.workspace.current import HASH_DIGITS, FileSnapshot, build_conflict_error, is_unchanged

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
