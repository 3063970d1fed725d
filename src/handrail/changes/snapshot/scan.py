"""Scans the paths of a root."""

import contextlib
import os
import stat
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from handrail.policy.names import is_credential
from handrail.protocol.changes import Kind
from handrail.workspace.file_state import read_contents, read_start
from handrail.workspace.resolve import INSPECT, LIST_FOLDER, READ_FILE, closing_descriptor, open_beneath
from handrail.workspace.roots import Root

MAX_SNAPSHOT_PATHS = 300_000
MAX_FILE_BYTES = 32 << 20
BEFORE_SECONDS = 15.0
AFTER_SECONDS = 60.0
"""Longer than before the command, since its changes must be found."""
SETTLED_NANOSECONDS = 2_000_000_000
"""The coarsest clock of a file system. Two changes within this time may have the same change time."""

REPOSITORY = ".git"
OTHER = "neither file, link nor folder"

_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}
_READABLE_MODES = {
    "file": (stat.S_IRUSR, stat.S_IRUSR | stat.S_IWUSR),
    "folder": (stat.S_IRUSR | stat.S_IXUSR, stat.S_IRWXU),
}
"""The mode that reading needs, and the mode that the owner gets if it is missing."""


class SnapshotError(Exception):
    """A snapshot is impossible. The message is the reason, and follows "since"."""


class SnapshotLimitError(SnapshotError):
    def __init__(self) -> None:
        super().__init__("the workspace is too large for a snapshot")


class SnapshotDeadline:
    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self._until - time.monotonic())

    def check(self) -> None:
        if time.monotonic() > self._until:
            raise SnapshotLimitError


class PathStat(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The status of a path. Only the kernel sets the change time."""

    kind: Kind | Literal["other"]
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int


def _build_path_stat(status: os.stat_result) -> PathStat:
    kind: Kind | Literal["other"] = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
    mode, size = stat.S_IMODE(status.st_mode), 0 if kind == "folder" else status.st_size
    return PathStat(kind, mode, size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_unchanged(then: PathStat, now: PathStat, taken: int) -> bool:
    """Whether a path certainly did not change since it was read at the time `taken`."""
    if then.kind == now.kind == "folder":
        return then.mode == now.mode
    return then == now and then.ctime < taken - SETTLED_NANOSECONDS


class Scan(NamedTuple):
    marks: dict[str, PathStat]
    uncovered: dict[str, str]
    """Paths that were not read or entered, each with the reason in words."""
    seen: dict[str, PathStat]
    """The status of uncovered paths, if it is known."""


class RootScanner:
    """Reads the paths of a root below its descriptor, so that no link is followed."""

    def __init__(self, root: Root, *, others: frozenset[str], kernel: bool) -> None:
        """`others`: roots in this one, which are scanned by themselves. `kernel`: as in `open_beneath`."""
        self.root = root
        self._others = others
        self._kernel = kernel

    def scan(
        self,
        deadline: SnapshotDeadline,
        *,
        left_out: Mapping[str, str],
        everything: bool = False,
        tidy: bool = False,
        start: str = "",
        most: int = MAX_SNAPSHOT_PATHS,
    ) -> Scan:
        """All paths below the root, or below the folder `start`.

        `left_out`: paths to skip, with the reason. `everything`: repositories, credentials and large files too.
        `tidy`: locked paths are unlocked, and pipes and sockets removed.
        """
        found = Scan({}, {}, {})
        pending = [start]
        while pending:
            deadline.check()
            folder = pending.pop()
            entries = self._list_folder(folder, found)
            if not everything and folder and any(name == REPOSITORY for name, _ in entries):
                found.marks.pop(folder, None)
                found.uncovered[folder] = "a repository of its own"
                continue
            for name, status in entries:
                path = f"{folder}/{name}" if folder else name
                if path in self._others:
                    continue
                mark = self._tidy(path, status) if tidy and path not in left_out else status
                if mark is None:
                    continue
                why = left_out.get(path) or describe_uncovered(path, mark, everything=everything)
                if why:
                    found.uncovered[path], found.seen[path] = why, mark
                    continue
                found.marks[path] = mark
                if mark.kind == "folder":
                    pending.append(path)
            if len(found.marks) > most:
                raise SnapshotLimitError
        return found

    def read_content(self, path: str, mark: PathStat) -> tuple[PathStat, bytes]:
        """The bytes of a file or the target of a link, with the status at that moment.

        OSError if it has another kind by now, or is too large.
        """
        if mark.kind == "link":
            with self._open_parent(path) as (folder, name):
                target = os.fsencode(os.readlink(name, dir_fd=folder))
                return _build_path_stat(os.lstat(name, dir_fd=folder)), target
        with self._open_file(path) as (descriptor, status):
            data = read_start(descriptor, MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise OSError("it became too large")
        return _build_path_stat(status), data

    def hash_file(self, path: str, deadline: SnapshotDeadline) -> tuple[PathStat, str]:
        """The hash of a large file, with the status at that moment."""
        with self._open_file(path) as (descriptor, status):
            return _build_path_stat(status), read_contents(descriptor, status.st_size, check=deadline.check).hash

    def _list_folder(self, folder: str, found: Scan) -> list[tuple[str, PathStat]]:
        """The entries of a folder. One that cannot be read is uncovered, since its later entries may be old."""
        try:
            with closing_descriptor(self._open(folder or ".", LIST_FOLDER)) as descriptor:
                return list(_list_marks(descriptor))
        except OSError as error:
            if not folder:
                raise SnapshotError(f"the workspace cannot be read ({error.strerror})") from None
            found.uncovered[folder] = "a folder that cannot be read"
            return []

    def _tidy(self, path: str, mark: PathStat) -> PathStat | None:
        """Makes a path readable that a command left behind without approval. None if it is removed.

        Locked paths would hide changes and block their undo. So would a pipe in the place of a file. An overlay needs
        no tidying, since such paths are not committed.
        """
        if mark.kind == "other":
            return None if self._remove_pipe(path) else mark
        needed, given = _READABLE_MODES.get(mark.kind, (0, 0))
        if mark.mode & needed != needed and os.geteuid() != 0:
            with contextlib.suppress(OSError), closing_descriptor(self._open(path, INSPECT)) as descriptor:
                if _build_path_stat(os.fstat(descriptor)) == mark:  # still the same file
                    os.chmod(f"/proc/self/fd/{descriptor}", mark.mode | given)
                return _build_path_stat(os.fstat(descriptor))
        return mark

    def _remove_pipe(self, path: str) -> bool:
        """Removes a named pipe or socket. False if it is neither, or cannot be removed."""
        with contextlib.suppress(OSError), self._open_parent(path) as (folder, name):
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                os.unlink(name, dir_fd=folder)
                return True
        return False

    @contextlib.contextmanager
    def _open_file(self, path: str) -> Generator[tuple[int, os.stat_result]]:
        with closing_descriptor(self._open(path, READ_FILE)) as descriptor:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError("it is no longer a file")
            yield descriptor, status

    @contextlib.contextmanager
    def _open_parent(self, path: str) -> Generator[tuple[int, str]]:
        folder, _, name = path.rpartition("/")
        with closing_descriptor(self._open(folder or ".", INSPECT | os.O_DIRECTORY)) as descriptor:
            yield descriptor, name

    def _open(self, path: str, flags: int) -> int:
        return open_beneath(self.root.descriptor, path, flags, kernel=self._kernel)


def describe_uncovered(path: str, mark: PathStat, *, everything: bool = False) -> str:
    """Why a path is not covered, in words. Empty if it is."""
    if not everything and path == REPOSITORY:
        return "the repository itself"
    if not everything and is_credential(path):
        return "a credential"
    if mark.kind == "other":
        return OTHER
    is_large = not everything and mark.kind == "file" and mark.size > MAX_FILE_BYTES
    return f"larger than {MAX_FILE_BYTES >> 20} MB" if is_large else ""


def _list_marks(folder: int) -> Iterator[tuple[str, PathStat]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                yield entry.name, _build_path_stat(entry.stat(follow_symlinks=False))
