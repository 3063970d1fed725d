"""Removes a file, a link or a folder, but only the one that was looked at."""

import contextlib
import errno
import os

from handrail.kernel.rename import rename_new
from handrail.protocol.error import ToolError
from handrail.workspace.current import FileSnapshot, hash_link, is_unchanged
from handrail.workspace.errors import clip_path
from handrail.workspace.swapping import UNSUPPORTED, Away, unlink


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
