"""Removes overlays: whatever commands made in them, and those of processes that were killed."""

import contextlib
import os

_MAX_LEVELS = 10
"""Folders below one another whose path is sure to be one that the system opens, and does not grow the stack."""


def remove_folder(folder: str) -> None:
    """Removes a folder of ours with everything in it: closed folders too, and those that lie very deep. Nobody else may
    be at work in it. OSError where that is not possible."""
    with contextlib.suppress(FileNotFoundError):
        while _emptied(folder, folder, 0):
            pass
        os.rmdir(folder)


def _emptied(folder: str, top: str, depth: int) -> bool:
    """Empties a folder; whether something was moved to the top, to be removed from there."""
    try:
        return _empty(folder, top, depth)
    except PermissionError:  # overlayfs closes its own folders, and a command may close any
        os.chmod(folder, 0o700)
        return _empty(folder, top, depth)


def _empty(folder: str, top: str, depth: int) -> bool:
    with os.scandir(folder) as found:
        entries = list(found)
    moved = False
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
        elif depth < _MAX_LEVELS:
            moved = _emptied(entry.path, top, depth + 1) or moved
            os.rmdir(entry.path)
        else:
            _move(entry.path, os.path.join(top, os.urandom(8).hex()))
            moved = True
    return moved


def _move(folder: str, place: str) -> None:
    try:
        os.rename(folder, place)
    except PermissionError:  # a folder that goes to another one is written to
        os.chmod(folder, 0o700)
        os.rename(folder, place)
