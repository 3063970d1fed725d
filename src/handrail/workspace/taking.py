"""Takes a file of an overlay into the workspace, as it is: nothing is copied, and its time and attributes stay."""

import contextlib
import os
import stat

from handrail.kernel.rename import rename_new
from handrail.workspace.current import FileSnapshot, build_conflict_error
from handrail.workspace.swapping import UNSUPPORTED, Away, build_swap_name, discard, swap_in, unlink

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
