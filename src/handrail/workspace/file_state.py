"""The state of a path at a moment: kind, mode, content, hash."""

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Self

import msgspec

from handrail.protocol.changes import State
from handrail.protocol.decisions import FileKind
from handrail.protocol.digest import SHORT_BYTES, sha256, short_sha256
from handrail.protocol.errors import ToolError
from handrail.workspace.resolve import READ_FILE, ResolvedParent, closing_descriptor
from handrail.workspace.roots import clip_path
from handrail.workspace.text import SAMPLE_BYTES

FileId = tuple[int, int]
"""Device and inode of a file."""

_MIN_THREADED_BYTES = 1 << 18
"""Fewer bytes are hashed sooner than a thread starts."""
_CHUNK_BYTES = 1 << 20
_SMALL_CHUNK_BYTES = 1 << 16
"""Stays in the processor's cache while it is compared."""
_UMASK_SOURCE = "/proc/self/status"


class Content(msgspec.Struct, frozen=True):
    """Bytes to write, in memory or read piece by piece."""

    hash: str
    size: int
    pieces: Callable[[], Iterable[bytes]]

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        return cls(_hash_bytes(data), len(data), lambda: (data,))


class FileContents(msgspec.Struct, frozen=True):
    digest: str | Callable[[], str]
    """The hash, or a function that waits for it."""
    size: int
    start: bytes = b""
    """The first SAMPLE_BYTES."""
    data: bytes | None = None
    """None if there are more bytes than the reader wanted to keep."""

    @property
    def hash(self) -> str:
        return self.digest if isinstance(self.digest, str) else self.digest()


class FileSnapshot(FileContents, frozen=True, kw_only=True):
    """A file that a write is about to replace."""

    status: os.stat_result

    def to_state(self) -> State:
        mode = stat.S_IMODE(self.status.st_mode)
        return State(kind="file", hash=self.hash, size=self.status.st_size, mode=mode)

    def has_same_bytes(self, descriptor: int) -> bool:
        """Whether an open file has these bytes. Bytes in memory are compared, which is faster than a hash."""
        if self.data is None:
            return read_contents(descriptor, self.status.st_size).hash == self.hash
        at = 0
        for chunk in read_chunks(descriptor, size=_SMALL_CHUNK_BYTES):
            if not self.data.startswith(chunk, at):
                return False
            at += len(chunk)
        return at == len(self.data)

    def is_unchanged_at(self, folder: int, name: str) -> bool:
        """Whether a name still has exactly this file and these bytes."""
        try:
            with closing_descriptor(os.open(name, READ_FILE, dir_fd=folder)) as descriptor:
                return os.path.samestat(os.fstat(descriptor), self.status) and self.has_same_bytes(descriptor)
        except OSError:
            return False


class PathState(msgspec.Struct, frozen=True):
    state: State | None
    current: FileSnapshot | None = None
    """Only for a file."""


def read_state(parent: ResolvedParent, keep: int = 0) -> PathState:
    """The state of a path, with the bytes of a file up to `keep`. CONFLICT unless it is a file, link or folder."""
    if parent.missing:
        return PathState(None)
    try:
        status = os.stat(parent.name, dir_fd=parent.folder, follow_symlinks=False)
    except FileNotFoundError:
        return PathState(None)
    if stat.S_ISDIR(status.st_mode):
        return PathState(State(kind="folder", mode=stat.S_IMODE(status.st_mode)))
    if stat.S_ISLNK(status.st_mode):
        return PathState(State(kind="link", hash=hash_link(parent.folder, parent.name) or "", size=status.st_size))
    if not stat.S_ISREG(status.st_mode):
        raise ToolError("CONFLICT", f"{clip_path(parent.name)} is no longer a file, link or folder.")
    file = read_file_snapshot(parent.folder, parent.name, keep)
    return PathState(file.to_state(), file) if file is not None else PathState(None)


def find_kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other"


def build_executable_mode(mode: int | None, *, on: bool = True) -> int:
    """The mode with execute permission for all readers, or for no user. None: the mode of a new file."""
    if mode is None:
        return (0o777 if on else 0o666) & ~_read_umask()
    return mode | (mode & 0o444) >> 2 if on else mode & ~0o111


def _read_umask() -> int:
    """Reads the umask from procfs, since umask(2) would change it for all threads for a moment."""
    with contextlib.suppress(OSError, ValueError), open(_UMASK_SOURCE, encoding="utf-8") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.removeprefix("Umask:"), 8)
    return 0o077


def read_file_snapshot(folder: int, name: str, keep: int) -> FileSnapshot | None:
    """The file as it is now, its bytes kept up to a size. None if it is missing."""
    try:
        descriptor = os.open(name, READ_FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    with closing_descriptor(descriptor):
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            number = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO
            raise OSError(number, os.strerror(number), name)
        read = read_contents(descriptor, status.st_size, keep)
        return FileSnapshot(read.digest, read.size, read.start, read.data, status=status)


def read_contents(descriptor: int, size: int, keep: int = 0, check: Callable[[], None] = lambda: None) -> FileContents:
    """Reads and hashes an open file of an expected size. `check` is called after each chunk of a large file."""
    if size <= keep:
        # One byte more than its size shows whether the file grew.
        data = os.pread(descriptor, size + 1, 0)
        if len(data) == size:
            digest = _hash_bytes(data) if size < _MIN_THREADED_BYTES else start_hash(data)
            return FileContents(digest, size, data[:SAMPLE_BYTES], data)
    hashed, kept, count, start = (short_sha256 if size <= SHORT_BYTES else sha256)(), bytearray(), 0, b""
    for chunk in read_chunks(descriptor, size=min(size + 1, _CHUNK_BYTES)):
        hashed.update(chunk)
        start = start or chunk[:SAMPLE_BYTES]
        count += len(chunk)
        if count <= keep:
            kept += chunk
        check()
    return FileContents(hashed.hexdigest(), count, start, bytes(kept) if count <= keep else None)


def hash_range(descriptor: int, start: int, length: int) -> str:
    digest = sha256()
    for chunk in read_chunks(descriptor, start, start + length):
        digest.update(chunk)
    return digest.hexdigest()


def _hash_bytes(data: bytes) -> str:
    return (short_sha256 if len(data) <= SHORT_BYTES else sha256)(data).hexdigest()


def read_start(descriptor: int, most: int) -> bytes:
    """The first bytes of an open file, at most `most`."""
    return b"".join(read_chunks(descriptor, 0, most, _SMALL_CHUNK_BYTES))


def read_chunks(descriptor: int, start: int = 0, end: int | None = None, size: int = _CHUNK_BYTES) -> Iterator[bytes]:
    """Reads an open file from `start` to `end`, or to its end."""
    while chunk := os.pread(descriptor, size if end is None else min(size, end - start), start):
        yield chunk
        start += len(chunk)


def hash_link(folder: int, name: str) -> str | None:
    """The hash of a link's target. None if it is no link."""
    try:
        return sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()
    except OSError:
        return None


def start_hash(data: bytes) -> Callable[[], str]:
    """Starts to hash bytes, and returns a function that waits for the hash.

    Many bytes are hashed in a thread, without Python's lock, so that the caller can continue.
    """
    if len(data) < _MIN_THREADED_BYTES:
        digest = _hash_bytes(data)
        return lambda: digest
    result: list[str] = []
    thread = threading.Thread(target=lambda: result.append(sha256(data).hexdigest()), daemon=True)
    thread.start()

    def wait() -> str:
        thread.join()
        return result[0]

    return wait
