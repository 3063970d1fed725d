"""The state of a path now: kind, mode, content, hash."""

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterable

import msgspec

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path
from handrail.workspace.resolve import ResolvedParent
from handrail.workspace.roots import Root, find_descriptor_path, find_innermost_root
from handrail.workspace.text import SAMPLE_BYTES
from handrail.workspace.workspace import Workspace

# § [workspace.content] Bytes that are to be written, and how they get onto the disk.

_MIN_THREADED_BYTES = 1 << 18
"""Bytes that take longer to hash than a thread takes to start."""
_ZEROS = bytes(1 << 16)


class Content(msgspec.Struct, frozen=True):
    """Bytes that are to be written, at hand or read piece by piece."""

    hash: str
    size: int
    pieces: Callable[[], Iterable[bytes]]


def build_content(data: bytes) -> Content:
    """Bytes that are at hand."""
    return Content(hashlib.sha256(data).hexdigest(), len(data), lambda: (data,))


def start_hash(data: bytes) -> Callable[[], str]:
    """Begins to hash the bytes; whoever calls what is returned waits for the end. Large ones are hashed by a thread of
    their own, without Python's lock, so that something else can be done meanwhile."""
    if len(data) < _MIN_THREADED_BYTES:
        digest = hashlib.sha256(data).hexdigest()
        return lambda: digest
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(hashlib.sha256(data).hexdigest()), daemon=True)
    thread.start()

    def wait() -> str:
        thread.join()
        return found[0]

    return wait


def fill(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Writes all of the pieces. Long runs of zeros take no room on the disk."""
    gap = False
    for piece in pieces:
        gap = _write(descriptor, piece, gap=gap)
    if gap:
        os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR))


def _write(descriptor: int, piece: bytes, *, gap: bool) -> bool:
    """Whether the file ends with a gap that nothing was written behind."""
    if len(piece) < len(_ZEROS) or _ZEROS not in piece:
        _write_all(descriptor, memoryview(piece))
        return gap and not piece
    whole = memoryview(piece)
    for start in range(0, len(piece), len(_ZEROS)):
        part = whole[start : start + len(_ZEROS)]
        gap = bytes(part) == _ZEROS
        if gap:
            os.lseek(descriptor, len(part), os.SEEK_CUR)
        else:
            _write_all(descriptor, part)
    return gap


def _write_all(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]


# § [workspace.current] What a file is at a moment, and whether it still is that.

HASH_DIGITS = 16
"""Of a hash, in the name of an unfinished file."""
_CHUNK_BYTES = 1 << 20
_COMPARED_CHUNK_BYTES = 1 << 16
"""Bytes compared at a time: so few that they stay in the cache."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class FileSnapshot(msgspec.Struct, frozen=True):
    """The bytes a write is about to replace."""

    status: os.stat_result
    digest: str | Callable[[], str]
    """The hash, or how to wait for it."""
    data: bytes | None
    """None above the limit that was asked for."""
    start: bytes = b""
    """The first bytes, however many there are."""

    @property
    def hash(self) -> str:
        """The hash of all bytes."""
        return self.digest if isinstance(self.digest, str) else self.digest()


def read_file_snapshot(folder: int, name: str, keep: int) -> FileSnapshot | None:
    """The file as it is now, its bytes kept up to a size; None when there is none."""
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), name)
        return _contents(descriptor, status, keep)
    finally:
        os.close(descriptor)


def is_unchanged(folder: int, name: str, known: FileSnapshot) -> bool:
    """Whether a name has exactly the file and the bytes that we know."""
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), known.status) and has_same_bytes(descriptor, known)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def hash_link(folder: int, name: str) -> str | None:
    """The hash of a link's target; None when it is no link."""
    try:
        return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()
    except OSError:
        return None


def has_same_bytes(descriptor: int, known: FileSnapshot) -> bool:
    """Whether an open file has the bytes that we know: compared where they are at hand, as that is quicker."""
    if known.data is None:
        return _contents(descriptor, known.status, 0).hash == known.hash
    at = 0
    while chunk := os.read(descriptor, _COMPARED_CHUNK_BYTES):
        if not known.data.startswith(chunk, at):
            return False
        at += len(chunk)
    return at == len(known.data)


def _contents(descriptor: int, status: os.stat_result, keep: int) -> FileSnapshot:
    if status.st_size <= keep:
        # In one piece, as the file most likely is: one byte more than its size shows that it did not grow.
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size and not os.read(descriptor, 1):
            return FileSnapshot(status, start_hash(data), data, data[:SAMPLE_BYTES])
        os.lseek(descriptor, 0, os.SEEK_SET)
    digest, kept, size, start = hashlib.sha256(), bytearray(), 0, b""
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        digest.update(chunk)
        start = start or chunk[:SAMPLE_BYTES]
        size += len(chunk)
        if size <= keep:
            kept += chunk
    return FileSnapshot(status, digest.hexdigest(), bytes(kept) if size <= keep else None, start)


def build_conflict_error(path: str) -> ToolError:
    """The refusal when somebody else was faster."""
    return ToolError(
        "CONFLICT",
        f"{clip_path(path)} changed while it was being written. Nothing was written. Read it, then call again.",
    )


# § [workspace.exact] Reaches a path exactly as it is spelled: no link on the way is followed, nor the last name if
# § it is one.  Undo goes this way. It knows the real path of what was changed; a link that is there now is somebody
# § else's change.

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class PathState(msgspec.Struct, frozen=True):
    """What is at a path now."""

    state: State | None
    current: FileSnapshot | None = None
    """The file, where it is one."""


def build_exact_path(workspace: Workspace, landing: ResolvedParent) -> bytes:
    """How a landing is spelled so that `reach` finds it again: relative in the workspace, absolute elsewhere."""
    parts, own = (
        tuple(part for part in find_descriptor_path(descriptor).split("/") if part)
        for descriptor in (landing.folder, workspace.main.descriptor)  # by where they are now, should they be moved
    )
    start = parts[len(own) :] if parts[: len(own)] == own else ("", *parts)
    return os.fsencode("/".join((*start, *landing.missing, landing.name)))


def render_path(workspace: Workspace, path: bytes) -> str:
    """The same as results name it."""
    root, parts = _placed(workspace, path)
    return root.display_path("/".join(parts))


def resolve_root(workspace: Workspace, path: bytes) -> Root:
    """The root that a path is in; OUTSIDE_WORKSPACE when this session has none such."""
    return _placed(workspace, path)[0]


def open_parent(workspace: Workspace, path: bytes) -> ResolvedParent:
    """The folder that a path is in, by descriptors; CONFLICT where a link or a file is on the way by now."""
    root, parts = _placed(workspace, path)
    if not root.writable:
        raise ToolError("ACCESS_DENIED", f"{_clipped(path)} is in a root that was opened for reading only.")
    if not parts:
        raise ToolError("CONFLICT", f"{_clipped(path)} is a root: what is in it is changed, not the root itself.")
    straight = _straight_to(root, parts) if workspace.kernel else None
    if straight is not None:
        return ResolvedParent(straight, parts[-1], ())
    folder = os.dup(root.descriptor)
    try:
        for number, name in enumerate(parts[:-1]):
            try:
                folder, outer = os.open(name, _FOLDER, dir_fd=folder), folder
            except FileNotFoundError:
                return ResolvedParent(folder, parts[-1], parts[number:-1])
            os.close(outer)
    except OSError as error:
        os.close(folder)
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise ToolError("CONFLICT", f"On the way to {_clipped(path)} there is a link or a file now.") from None
        raise
    return ResolvedParent(folder, parts[-1], ())


def _straight_to(root: Root, parts: tuple[str, ...]) -> int | None:
    """The folder by one call of the kernel, as it mostly is; None where the walk has to say what is in the way."""
    try:
        return openat2(root.descriptor, "/".join(parts[:-1]) or ".", _FOLDER, resolve=RESOLVE_NO_SYMLINKS)
    except OSError:
        return None


def read_state(landing: ResolvedParent, keep: int = 0) -> PathState:
    """What is there, the bytes of a file kept up to a size; CONFLICT for what is neither file, link nor folder."""
    if landing.missing:
        return PathState(None)
    try:
        status = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False)
    except FileNotFoundError:
        return PathState(None)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return PathState(State(kind="folder", mode=mode))
    if stat.S_ISLNK(status.st_mode):
        return PathState(State(kind="link", hash=hash_link(landing.folder, landing.name) or "", size=status.st_size))
    if not stat.S_ISREG(status.st_mode):
        raise ToolError("CONFLICT", f"{clip_path(landing.name)} is no file, link or folder any more.")
    now = read_file_snapshot(landing.folder, landing.name, keep)
    return PathState(to_state(now), now) if now is not None else PathState(None)


def to_state(file: FileSnapshot) -> State:
    """The state of a file that was looked at."""
    mode = stat.S_IMODE(file.status.st_mode)
    return State(kind="file", hash=file.hash, size=file.status.st_size, mode=mode)


def _placed(workspace: Workspace, path: bytes) -> tuple[Root, tuple[str, ...]]:
    spelled = os.fsdecode(path)
    parts = tuple(part for part in spelled.split("/") if part)
    if not spelled.startswith("/"):
        return workspace.main, parts
    found = find_innermost_root(parts, workspace.roots)
    if found is None:
        raise ToolError("OUTSIDE_WORKSPACE", f"{clip_path(spelled)} is in no root of this session.")
    return found


def _clipped(path: bytes) -> str:
    return clip_path(os.fsdecode(path))
