"""Whether an overlay can lie over folders here, by what the table of mounts says of them."""

import os
import select
import threading
from collections.abc import Iterable
from typing import NamedTuple, TextIO

_TABLE = "/proc/self/mountinfo"
_ESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}
_MAX_PATH_CHARACTERS = 200


class MountPoint(NamedTuple):
    """One mount."""

    place: str
    kind: str
    """The name of the file system."""


def read_mounts() -> tuple[MountPoint, ...]:
    """All of them, in the order in which they were made."""
    return _table.read()


def find_overlay_obstacle(roots: Iterable[str], mounted: Iterable[MountPoint]) -> str | None:
    """What of the roots speaks against an overlay over them, in words; None where nothing does."""
    starts = {root: f"{root.rstrip('/')}/" for root in roots}
    for mount in mounted:
        for root, start in starts.items():
            if mount.place.startswith(start) and mount.place != root:
                inside = keep_path_end(mount.place.removeprefix(start))
                return (
                    f"{inside} in {keep_path_end(root)} is a mount of its own, which would be missing under an overlay"
                )
    return next((why for root in starts if (why := _why_not_written(root))), None)


def find_file_system(folder: str, mounted: Iterable[MountPoint]) -> str:
    """The name of the file system that a folder is on."""
    found = [mount for mount in mounted if folder == mount.place or folder.startswith(f"{mount.place.rstrip('/')}/")]
    longest = max(found, key=lambda mount: len(mount.place), default=MountPoint("/", "an unknown file system"))
    # Of several at one place the last lies on top.
    return next(mount.kind for mount in reversed((longest, *found)) if mount.place == longest.place)


def keep_path_end(path: str) -> str:
    """The path on one line, or its last 200 characters. Unlike `clip_path`, it escapes only newlines and surrogates."""
    text = path.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    return text if len(text) <= _MAX_PATH_CHARACTERS else f"…{text[-_MAX_PATH_CHARACTERS:]}"


def _why_not_written(root: str) -> str | None:
    try:
        read_only = os.statvfs(root).f_flag & os.ST_RDONLY
    except OSError as error:
        return f"{keep_path_end(root)} cannot be looked at ({error.strerror})"
    if read_only:
        return f"{keep_path_end(root)} is on a file system that is mounted read-only"
    return (
        None
        if os.access(root, os.W_OK | os.X_OK)
        else f"{keep_path_end(root)} is a folder that this user cannot write to"
    )


def _read(line: str) -> MountPoint:
    words = line.split(" ")
    place = words[4]
    if "\\" in place:
        for escaped, character in _ESCAPED.items():
            place = place.replace(escaped, character)
    return MountPoint(place, words[words.index("-") + 1])


class _Table:
    """The table of mounts, read anew only where the kernel says that it changed: every command asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: TextIO | None = None
        self._changes = select.poll()
        self._process = 0
        self._mounts: tuple[MountPoint, ...] = ()

    def read(self) -> tuple[MountPoint, ...]:
        with self._lock:
            # Who was forked shares the file with its parent, and either would be told of a change that the other saw.
            if self._file is None or self._process != os.getpid():
                self._open()
            if self._changes.poll(0) or not self._mounts:
                self._mounts = self._all()
            return self._mounts

    def _open(self) -> None:
        self._file = open(_TABLE, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115  kept open to be asked
        self._changes = select.poll()
        self._changes.register(self._file, select.POLLPRI)
        self._process, self._mounts = os.getpid(), ()

    def _all(self) -> tuple[MountPoint, ...]:
        if self._file is None:
            return ()
        self._file.seek(0)
        return tuple(map(_read, self._file.read().splitlines()))


_table = _Table()
