"""Scans a root."""

import contextlib
import os
import stat
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from handrail.policy.names import is_credential
from handrail.protocol.changes import Kind
from handrail.workspace.file_state import read_contents, read_start
from handrail.workspace.resolve import INSPECT, LIST_FOLDER, READ_FILE, open_beneath
from handrail.workspace.roots import Root

# § [changes.snapshots.marks] What the system tells of a file without opening it, and when that is enough to know
# § that it is the same.

SETTLED_NANOSECONDS = 2_000_000_000
"""Nanoseconds after a change in which a second one may bear the same time, on the coarsest of clocks."""
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}


class PathStat(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One path at a moment. The change time is the system's own: nobody else sets it."""

    kind: Kind | Literal["other"]
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int


class SnapshotEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A path with what it held."""

    mark: PathStat
    hash: bytes = b""
    """SHA-256 of a file's bytes, or of where a link leads; a folder has none."""
    object: bytes = b""
    """The name that git keeps them under."""


def to_path_stat(status: os.stat_result) -> PathStat:
    """What a path is now."""
    kind: Kind | Literal["other"] = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
    mode, size = stat.S_IMODE(status.st_mode), 0 if kind == "folder" else status.st_size
    return PathStat(kind, mode, size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_unchanged(then: PathStat, now: PathStat, taken: int) -> bool:
    """Whether a path is for certain what it was when it was read, at the time `taken`."""
    if then.kind == now.kind == "folder":
        return then.mode == now.mode
    return then == now and then.ctime < taken - SETTLED_NANOSECONDS


# § [changes.snapshots.patience] How long, and how much of it, a snapshot may take: nobody waits minutes for a
# § command of a second.

MAX_SNAPSHOT_PATHS = 300_000
MAX_FILE_BYTES = 32 << 20
"""Bytes of a file that is kept."""
MAX_SNAPSHOT_BYTES = 1 << 30
"""Of files that are kept in one go."""
MAX_IGNORED_PATHS, MAX_IGNORED_BYTES = 5_000, 64 << 20
"""Of what git ignores and is kept all the same."""
BEFORE_SECONDS = 15.0
AFTER_SECONDS = 60.0
"""Longer, since by then the command has run, and what it changed is to be known."""


class SnapshotError(Exception):
    """There can be no snapshot; why, in words that follow a "since"."""


class SnapshotLimitError(SnapshotError):
    """It takes too long, or is too much."""

    def __init__(self) -> None:
        super().__init__("there is too much in the workspace to keep all of it beforehand")


class SnapshotDeadline:
    """Time that runs out."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self._until - time.monotonic())

    def check(self) -> None:
        """To be called again and again in long work."""
        if time.monotonic() > self._until:
            raise SnapshotLimitError


# § [changes.snapshots.tidying] Sees to it that all can be looked at that a command left behind which nobody was
# § asked about. What it closed to its owner would hide what it did there, and stand in the way when that is undone;
# § so would a named pipe in the place of a file. An overlay has neither problem: there such a thing is seen, and
# § not committed.

_NEEDED = {"file": (stat.S_IRUSR, stat.S_IRUSR | stat.S_IWUSR), "folder": (stat.S_IRUSR | stat.S_IXUSR, stat.S_IRWXU)}


def tidy_path(root: Root, path: str, mark: PathStat, *, kernel: bool) -> PathStat | None:
    """What is at a path then; None where it was nothing that is kept. What cannot be done is let be."""
    if mark.kind == "other":
        return None if _is_removed(root, path, kernel=kernel) else mark
    least, given = _NEEDED.get(mark.kind, (0, 0))
    if mark.mode & least == least or os.geteuid() == 0:
        return mark
    with contextlib.suppress(OSError):
        return _opened_up(root, path, mark, given, kernel=kernel)
    return mark


def _is_removed(root: Root, path: str, *, kernel: bool) -> bool:
    folder, _, name = path.rpartition("/")
    try:
        above = open_beneath(root.descriptor, folder or ".", INSPECT | os.O_DIRECTORY, kernel=kernel)
        try:
            found = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
            if stat.S_ISFIFO(found) or stat.S_ISSOCK(found):
                os.unlink(name, dir_fd=above)
                return True
        finally:
            os.close(above)
    except OSError:
        pass
    return False


def _opened_up(root: Root, path: str, mark: PathStat, given: int, *, kernel: bool) -> PathStat:
    descriptor = open_beneath(root.descriptor, path, INSPECT, kernel=kernel)
    try:
        if to_path_stat(os.fstat(descriptor)) == mark:  # and no link, nor anybody else's file
            os.chmod(f"/proc/self/fd/{descriptor}", mark.mode | given)
        return to_path_stat(os.fstat(descriptor))
    finally:
        os.close(descriptor)


# § [changes.snapshots.scanning] Looks through a root: every path that is there is either marked, or lies in one
# § that is told as not covered. No link is followed, whatever is renamed meanwhile: paths are opened beneath the
# § root's descriptor.

REPOSITORY = ".git"
OTHER = "neither file, link nor folder"


class Scan(NamedTuple):
    """What is in a root, by paths below it."""

    marks: dict[str, PathStat]
    uncovered: dict[str, str]
    """Paths that are there and were not looked at or into, each with the reason in words."""
    seen: dict[str, PathStat]
    """What these are themselves, as far as somebody looked."""


def scan(
    root: Root,
    patience: SnapshotDeadline,
    *,
    left_out: Mapping[str, str],
    others: Collection[str] = (),
    kernel: bool,
    everything: bool = False,
    tidy: bool = False,
    start: str = "",
    most: int = MAX_SNAPSHOT_PATHS,
) -> Scan:
    """Everything below a root, or below a folder in it. `left_out`: what is not looked at, with the reason. `others`:
    roots in it, which are looked at on their own. `everything`: also repositories, credentials and large files. `tidy`:
    what nobody could look at, or bring back, is opened to its owner or removed on the way."""
    found = Scan({}, {}, {})
    waiting = [start]
    while waiting:
        patience.check()
        folder = waiting.pop()
        entries = _entries(root, folder, found, kernel=kernel)
        if not everything and folder and any(name == REPOSITORY for name, _ in entries):
            found.marks.pop(folder, None)
            found.uncovered[folder] = "a repository of its own"
            continue
        for name, met in entries:
            path = f"{folder}/{name}" if folder else name
            if path in others:
                continue
            mark = tidy_path(root, path, met, kernel=kernel) if tidy and path not in left_out else met
            if mark is None:
                continue
            why = left_out.get(path) or describe_uncovered(path, mark, everything=everything)
            if why:
                found.uncovered[path], found.seen[path] = why, mark
                continue
            found.marks[path] = mark
            if mark.kind == "folder":
                waiting.append(path)
        if len(found.marks) > most:
            raise SnapshotLimitError
    return found


def describe_uncovered(path: str, mark: PathStat, *, everything: bool = False) -> str:
    """Why a path is not covered, in words; empty where it is."""
    if not everything and path == REPOSITORY:
        return "the repository itself"
    if not everything and is_credential(path):
        return "a credential"
    if mark.kind == "other":
        return OTHER
    is_large = not everything and mark.kind == "file" and mark.size > MAX_FILE_BYTES
    return f"larger than {MAX_FILE_BYTES >> 20} MB" if is_large else ""


def _entries(root: Root, folder: str, found: Scan, *, kernel: bool) -> list[tuple[str, PathStat]]:
    """What is in a folder; nothing where nobody can tell, and then it is told as not covered: what shows up in it later
    may have been there all the time."""
    try:
        descriptor = open_beneath(root.descriptor, folder or ".", LIST_FOLDER, kernel=kernel)
        try:
            return list(_marked(descriptor))
        finally:
            os.close(descriptor)
    except OSError as error:
        if not folder:
            raise SnapshotError(f"the workspace cannot be looked into ({error.strerror})") from None
        found.uncovered[folder] = "a folder that cannot be read"
        return []


def _marked(descriptor: int) -> Iterator[tuple[str, PathStat]]:
    with os.scandir(descriptor) as entries:
        for entry in entries:
            try:
                yield entry.name, to_path_stat(entry.stat(follow_symlinks=False))
            except FileNotFoundError:  # gone meanwhile
                continue


# § [changes.snapshots.reading] Reads what a path holds, never through a link.


def read_content(root: Root, path: str, mark: PathStat, *, kernel: bool) -> tuple[PathStat, bytes]:
    """The bytes of a file, or where a link leads, with what the path was at that moment; OSError where it is no longer
    of its kind, or too large."""
    if mark.kind == "link":
        return _link(root, path, kernel=kernel)
    with _open_file(root, path, kernel=kernel) as (descriptor, status):
        data = read_start(descriptor, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError("it is too large by now")
    return to_path_stat(status), data


def hash_file(root: Root, path: str, patience: SnapshotDeadline, *, kernel: bool) -> tuple[PathStat, str]:
    """The hash of a file that is too large to be held in memory, with what the path was at that moment."""
    with _open_file(root, path, kernel=kernel) as (descriptor, status):
        return to_path_stat(status), read_contents(descriptor, status.st_size, check=patience.check).hash


@contextlib.contextmanager
def _open_file(root: Root, path: str, *, kernel: bool) -> Generator[tuple[int, os.stat_result]]:
    descriptor = open_beneath(root.descriptor, path, READ_FILE, kernel=kernel)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no file any more")
        yield descriptor, status
    finally:
        os.close(descriptor)


def _link(root: Root, path: str, *, kernel: bool) -> tuple[PathStat, bytes]:
    folder, _, name = path.rpartition("/")
    above = open_beneath(root.descriptor, folder or ".", INSPECT | os.O_DIRECTORY, kernel=kernel)
    try:
        target = os.fsencode(os.readlink(name, dir_fd=above))
        return to_path_stat(os.lstat(name, dir_fd=above)), target
    finally:
        os.close(above)
