"""Takes snapshots of the writable roots of a workspace."""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from datetime import datetime
from typing import IO

import msgspec

from handrail.changes.history import History
from handrail.changes.snapshot.git_store import GitError, PrivateGit, find_git, format_blob
from handrail.changes.snapshot.scan import (
    BEFORE_SECONDS,
    PathStat,
    RootScanner,
    Scan,
    SnapshotDeadline,
    SnapshotError,
    SnapshotLimitError,
    describe_uncovered,
    is_unchanged,
)
from handrail.protocol.errors import StoreError
from handrail.protocol.wire import get_msgpack_decoder
from handrail.store.state_dir import make_private, write_private
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

MAX_SNAPSHOT_BYTES = 1 << 30
"""Bytes that one snapshot adds to the store."""
MAX_IGNORED_PATHS, MAX_IGNORED_BYTES = 5_000, 64 << 20
"""Limits of files that git ignores and that are kept nevertheless."""
_MAX_PACKS = 200
"""Number of packs after which the store starts anew, since most of their contents are outdated."""
_IGNORED = "ignored by git"
_WHOLE, _PARTIAL = "whole", "table"
"""File names of tables. Older versions called whole ones `table` too, so a `table` never counts as whole."""


class UncoveredPath(msgspec.Struct, frozen=True):
    path: str
    """Absolute."""
    shown: str
    why: str


class SnapshotEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    mark: PathStat
    hash: bytes = b""
    """SHA-256 of the bytes of a file, or of the target of a link."""
    object: bytes = b""
    """The name of the content in git."""


class SnapshotTable(msgspec.Struct, frozen=True, array_like=True):
    """The entries of a root at a moment."""

    taken: int
    """Nanoseconds. Paths with a later change time may have changed since they were read."""
    kept: dict[bytes, SnapshotEntry]
    uncovered: dict[bytes, str]
    """Paths that are not kept, each with the reason in words."""


_encode = msgspec.msgpack.Encoder().encode
_decode = get_msgpack_decoder(SnapshotTable).decode


class Snapshot:
    def __init__(self, workspace: Workspace, tables: "list[tuple[RootSnapshots, SnapshotTable]]") -> None:
        self.workspace = workspace
        self.tables = tables

    def uncovered(self) -> Iterator[UncoveredPath]:
        for snapshots, table in self.tables:
            root = snapshots.scanner.root
            for name, why in table.uncovered.items():
                path = os.fsdecode(name)
                yield UncoveredPath(os.path.join(root.path, path), root.display_path(path), why)


def take_snapshot(workspace: Workspace, history: History) -> Snapshot:
    """Keeps everything that a command may change. SnapshotError if that fails or takes too long."""
    deadline, roots = SnapshotDeadline(BEFORE_SECONDS), tuple(_list_roots(workspace, history))
    try:
        return Snapshot(workspace, [(snapshots, snapshots.take(deadline)) for snapshots in roots])
    except (OSError, StoreError, SnapshotError) as error:
        for snapshots in roots:  # the command may still run; recovery must not settle it by some of its roots
            snapshots.invalidate()
        is_known = isinstance(error, SnapshotError)
        raise error if is_known else SnapshotError(f"the files could not be stored ({error})") from error


def load_last_snapshot(workspace: Workspace, history: History, *, since: datetime, until: datetime) -> Snapshot:
    """The whole snapshots that were taken between two times. SnapshotError if there is none."""
    tables = [(snapshots, snapshots.load_last()) for snapshots in _list_roots(workspace, history)]
    start, end = since.timestamp() * 1e9, until.timestamp() * 1e9
    whole = [(snapshots, table) for snapshots, table in tables if table is not None and start <= table.taken <= end]
    if not whole:
        raise SnapshotError("the old content is no longer stored")
    return Snapshot(workspace, whole)


def open_scanner(root: Root, workspace: Workspace) -> RootScanner:
    """A scanner of a root that skips the other roots in it."""
    inside = (other.path for other in workspace.roots if other.path.startswith(f"{root.path.rstrip('/')}/"))
    others = frozenset(os.path.relpath(path, root.path) for path in inside)
    return RootScanner(root, others=others, kernel=workspace.kernel)


def _list_roots(workspace: Workspace, history: History) -> "Iterator[RootSnapshots]":
    program = find_git()
    if program is None:
        raise SnapshotError("git is not installed")
    for root in workspace.roots:
        if root.writable:
            name = hashlib.sha256(os.fsencode(root.path)).hexdigest()[:16]
            folder = os.path.join(history.folder, "snapshots", name)
            yield RootSnapshots(open_scanner(root, workspace), folder, program)


class RootSnapshots:
    """The snapshots of one root, in a private folder. At most the last one is whole."""

    def __init__(self, scanner: RootScanner, folder: str, program: str) -> None:
        self.scanner = scanner
        self.git = PrivateGit(program, folder)
        self._folder = folder

    def take(self, deadline: SnapshotDeadline) -> SnapshotTable:
        """Keeps the present contents. SnapshotLimitError if it takes too long. The kept contents speed up the next."""
        try:
            if os.path.isdir(self._folder) and self.git.packs > _MAX_PACKS:
                self._delete()
        except OSError:
            self._delete()
        make_private(self._folder)
        self.git.make()
        self.invalidate()
        before = self._read(_PARTIAL)
        found = self._scan(deadline)
        writer = _SnapshotWriter(self, before, deadline)
        try:
            with contextlib.ExitStack() as stack:
                writer.keep_all(found.marks, stack)
        except GitError:
            self._delete()
            raise
        except SnapshotLimitError:
            self._write(_PARTIAL, writer.build_table(found.uncovered))
            raise
        table = writer.build_table(found.uncovered)
        self._write(_WHOLE, table)
        return table

    def load_last(self) -> SnapshotTable | None:
        """The last snapshot, if it is whole."""
        return self._read(_WHOLE)

    def invalidate(self) -> None:
        """Marks the last snapshot as partial, so that recovery does not settle the next command by it."""
        with contextlib.suppress(FileNotFoundError):
            os.replace(os.path.join(self._folder, _WHOLE), os.path.join(self._folder, _PARTIAL))

    def _delete(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, name: str) -> SnapshotTable | None:
        try:
            with open(os.path.join(self._folder, name), "rb") as file:
                return _decode(file.read())
        except (OSError, msgspec.DecodeError):
            return None

    def _write(self, name: str, table: SnapshotTable) -> None:
        write_private(os.path.join(self._folder, name), _encode(table), ".new")

    def _scan(self, deadline: SnapshotDeadline) -> Scan:
        """All paths, and the ignored ones as far as the limits allow."""
        ignored = self.git.ignored(self.scanner.root.path, deadline)
        found = self.scanner.scan(deadline, left_out=dict.fromkeys(ignored, _IGNORED))
        left, left_bytes = MAX_IGNORED_PATHS, MAX_IGNORED_BYTES
        for path in sorted(path for path, why in found.uncovered.items() if why == _IGNORED):
            inside = self._scan_ignored(path, found.seen[path], deadline, left)
            size = sum(mark.size for mark in inside.marks.values()) if inside else 0
            if inside is not None and size <= left_bytes and len(inside.marks) <= left:
                left, left_bytes = left - len(inside.marks), left_bytes - size
                del found.uncovered[path]
                found.marks.update(inside.marks)
                found.uncovered.update(inside.uncovered)
                found.seen.update(inside.seen)
        return found

    def _scan_ignored(self, path: str, mark: PathStat, deadline: SnapshotDeadline, most: int) -> Scan | None:
        """An ignored file, or an ignored folder with its entries. None if it is too large."""
        if why := describe_uncovered(path, mark):
            return Scan({}, {path: why}, {path: mark})
        if mark.kind != "folder":
            return Scan({path: mark}, {}, {})
        try:
            inside = self.scanner.scan(deadline, left_out={}, start=path, most=most)
        except SnapshotLimitError:
            deadline.check()
            return None
        if path not in inside.uncovered:
            inside.marks[path] = mark
        return inside


class _SnapshotWriter:
    """Keeps the contents of one snapshot. Paths that did not change since the last one are not read again."""

    def __init__(self, snapshots: RootSnapshots, before: SnapshotTable | None, deadline: SnapshotDeadline) -> None:
        self._snapshots = snapshots
        self._known = before.kept if before else {}
        self._known_at = before.taken if before else 0
        self._deadline = deadline
        self._taken = time.time_ns()
        self._kept: dict[bytes, SnapshotEntry] = {}
        self._unreadable: dict[str, str] = {}
        self._bytes = 0
        self._pipe: IO[bytes] | None = None

    def keep_all(self, marks: dict[str, PathStat], stack: contextlib.ExitStack) -> None:
        for number, (path, mark) in enumerate(marks.items()):
            name = os.fsencode(path)
            known = self._known.get(name)
            if known is not None and is_unchanged(known.mark, mark, self._known_at):
                self._kept[name] = SnapshotEntry(mark, known.hash, known.object)
            elif mark.kind == "folder":
                self._kept[name] = SnapshotEntry(mark)
            else:
                self._keep(path, name, mark, stack)
            if number % 256 == 0:
                self._deadline.check()

    def build_table(self, uncovered: dict[str, str]) -> SnapshotTable:
        reasons = {os.fsencode(path): why for path, why in (uncovered | self._unreadable).items()}
        return SnapshotTable(self._taken, self._kept, reasons)

    def _keep(self, path: str, name: bytes, mark: PathStat, stack: contextlib.ExitStack) -> None:
        try:
            now, data = self._snapshots.scanner.read_content(path, mark)
        except OSError:
            self._unreadable[path] = "a file that cannot be read"
            return
        self._bytes += len(data)
        if self._bytes > MAX_SNAPSHOT_BYTES:
            raise SnapshotLimitError
        if self._pipe is None:
            self._pipe = stack.enter_context(self._snapshots.git.storing(self._deadline))
        try:
            self._pipe.write(format_blob(data))
        except BrokenPipeError:
            raise GitError("git ended while it stored contents") from None
        object_name = hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).digest()
        self._kept[name] = SnapshotEntry(now, hashlib.sha256(data).digest(), object_name)
