"""Whether a layer can lie over folders here, by what the table of mounts says of them."""

import os
import select
import threading
from collections.abc import Iterable
from typing import NamedTuple, TextIO

_TABLE = "/proc/self/mountinfo"
_ESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}
_WORDS = 200


class Mounted(NamedTuple):
    """One mount."""

    place: str
    kind: str
    """The name of the file system."""


def mounts() -> tuple[Mounted, ...]:
    """All of them, in the order in which they were made."""
    return _table.read()


def why_unfit(roots: Iterable[str], mounted: Iterable[Mounted]) -> str | None:
    """What of the roots speaks against a layer over them, in words; None where nothing does."""
    starts = {root: f"{root.rstrip('/')}/" for root in roots}
    for mount in mounted:
        for root, start in starts.items():
            if mount.place.startswith(start) and mount.place != root:
                inside = shown(mount.place.removeprefix(start))
                return f"{inside} in {shown(root)} is a mount of its own, which would be missing under a layer"
    return next((why for root in starts if (why := _why_not_written(root))), None)


def file_system(folder: str, mounted: Iterable[Mounted]) -> str:
    """The name of the file system that a folder is on."""
    found = [mount for mount in mounted if folder == mount.place or folder.startswith(f"{mount.place.rstrip('/')}/")]
    longest = max(found, key=lambda mount: len(mount.place), default=Mounted("/", "an unknown file system"))
    # Of several at one place the last lies on top.
    return next(mount.kind for mount in reversed((longest, *found)) if mount.place == longest.place)


def shown(path: str) -> str:
    """A path as part of a sentence."""
    text = path.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    return text if len(text) <= _WORDS else f"…{text[-_WORDS:]}"


def _why_not_written(root: str) -> str | None:
    try:
        read_only = os.statvfs(root).f_flag & os.ST_RDONLY
    except OSError as error:
        return f"{shown(root)} cannot be looked at ({error.strerror})"
    if read_only:
        return f"{shown(root)} is on a file system that is mounted read-only"
    return None if os.access(root, os.W_OK | os.X_OK) else f"{shown(root)} is a folder that this user cannot write to"


def _read(line: str) -> Mounted:
    words = line.split(" ")
    place = words[4]
    if "\\" in place:
        for escaped, character in _ESCAPED.items():
            place = place.replace(escaped, character)
    return Mounted(place, words[words.index("-") + 1])


class _Table:
    """The table of mounts, read anew only where the kernel says that it changed: every command asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: TextIO | None = None
        self._changes = select.poll()
        self._process = 0
        self._mounts: tuple[Mounted, ...] = ()

    def read(self) -> tuple[Mounted, ...]:
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

    def _all(self) -> tuple[Mounted, ...]:
        if self._file is None:
            return ()
        self._file.seek(0)
        return tuple(map(_read, self._file.read().splitlines()))


_table = _Table()
