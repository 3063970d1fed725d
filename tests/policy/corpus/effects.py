"""What a command did to its scratch workspace, and how that is taken back."""

import os
import shutil
import stat
from pathlib import Path

import msgspec

State = dict[str, tuple[int, int, int, str]]
"""Each path with its mode, size, time of change and, of a link, where it leads. Times and sizes of folders are left
out: they only say that something in them changed."""


class Changes(msgspec.Struct, frozen=True):
    """Paths that are new or otherwise than before, and paths that are gone."""

    written: frozenset[str]
    deleted: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)


def state(root: Path) -> State:
    """Everything below a folder."""
    found: State = {}
    waiting = [str(root)]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            found[os.path.relpath(entry.path, root)] = _entry(entry)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return found


def changes(before: State, after: State) -> Changes:
    """How two states differ."""
    written = {path for path, entry in after.items() if before.get(path) != entry}
    return Changes(frozenset(written), frozenset(before.keys() - after.keys()))


def take_back(found: Changes, template: Path, workspace: Path) -> None:
    """Makes the workspace what the template is."""
    for path in sorted(found.written, reverse=True):
        if _kind(workspace / path) != _kind(template / path):
            _remove(workspace / path)
    for path in sorted({*found.written, *found.deleted}):
        if _kind(template / path):
            _copy(template / path, workspace / path)


def _entry(entry: os.DirEntry[str]) -> tuple[int, int, int, str]:
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        return status.st_mode, 0, 0, ""
    target = os.readlink(entry.path) if stat.S_ISLNK(status.st_mode) else ""
    return status.st_mode, status.st_size, status.st_mtime_ns, target


def _kind(path: Path) -> int:
    return stat.S_IFMT(path.lstat().st_mode) if os.path.lexists(path) else 0


def _remove(path: Path) -> None:
    if stat.S_ISDIR(path.lstat().st_mode):
        shutil.rmtree(path)
    else:
        path.unlink()


def _copy(source: Path, target: Path) -> None:
    if stat.S_ISDIR(source.lstat().st_mode):
        target.mkdir(exist_ok=True)
        target.chmod(stat.S_IMODE(source.stat().st_mode))
    else:
        # Not over what is there: it may be read-only, or have other names.
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
