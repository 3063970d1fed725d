"""Puts a link in the place of another, so that anybody sees the old one or the new."""

import contextlib
import os

from handrail.kernel.rename import exchange
from handrail.protocol.error import ToolError
from handrail.workspace.current import build_conflict_error, hash_link
from handrail.workspace.removal import remove_link
from handrail.workspace.swapping import UNSUPPORTED, build_swap_name


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
