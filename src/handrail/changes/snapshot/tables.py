"""The snapshots of a root."""

import contextlib
import hashlib
import os
import shutil
import time
from typing import IO

import msgspec

from handrail.changes.snapshot.git_store import GitError, PrivateGit, format_blob
from handrail.changes.snapshot.scan import (
    MAX_IGNORED_BYTES,
    MAX_IGNORED_PATHS,
    MAX_SNAPSHOT_BYTES,
    PathStat,
    Scan,
    SnapshotDeadline,
    SnapshotEntry,
    SnapshotLimitError,
    describe_uncovered,
    is_unchanged,
    read_content,
    scan,
)
from handrail.protocol.wire import get_msgpack_decoder
from handrail.store.state_dir import make_private, write_private
from handrail.workspace.roots import Root

_MAX_PACKS = 200
"""Files of contents, after which everything is begun anew: most of what is in them nobody needs any more."""
_IGNORED = "ignored by git"
_WHOLE, _PARTIAL = "whole", "table"
"""Names of tables. Older versions called whole ones `table` too, so a `table` never counts as whole."""


class SnapshotTable(msgspec.Struct, frozen=True, array_like=True):
    """What a root was at a moment."""

    taken: int
    """Nanoseconds; what has a later change time may have been changed since it was read."""
    kept: dict[bytes, SnapshotEntry]
    uncovered: dict[bytes, str]
    """What was there and is not kept, each with the reason in words."""


_encode = msgspec.msgpack.Encoder().encode
_decode = get_msgpack_decoder(SnapshotTable).decode


class RootSnapshots:
    """The snapshots of one root: at most the last is whole."""

    def __init__(self, root: Root, folder: str, program: str, *, others: frozenset[str], kernel: bool) -> None:
        """`folder`: ours alone, for this root. `others`: roots in this one, by their paths below it."""
        self.root = root
        self.kernel = kernel
        self.git = PrivateGit(program, folder)
        self._folder = folder
        self._others = others

    def take(self, patience: SnapshotDeadline) -> SnapshotTable:
        """Keeps what the root is now. TooLongError where that takes too long: what is kept by then is not lost."""
        self._make()
        self.invalidate()
        before = self._read(_PARTIAL)
        found = self._look(patience)
        taking = _Taking(self, before, patience)
        try:
            with contextlib.ExitStack() as stack:
                taking.take_all(found.marks, stack)
        except GitError:
            self.forget()
            raise
        except SnapshotLimitError:
            self._write(_PARTIAL, taking.table(found.uncovered))
            raise
        table = taking.table(found.uncovered)
        self._write(_WHOLE, table)
        return table

    def look_again(self, table: SnapshotTable, patience: SnapshotDeadline, *, tidy: bool) -> Scan:
        """What the root is now, where the snapshot covers it: what was not covered then is not now either, and what
        has come since is looked at whatever it is."""
        left_out = {os.fsdecode(path): why for path, why in table.uncovered.items()}
        return scan(
            self.root,
            patience,
            left_out=left_out,
            others=self._others,
            kernel=self.kernel,
            everything=True,
            tidy=tidy,
        )

    def last(self) -> SnapshotTable | None:
        """The last snapshot, if it is whole."""
        return self._read(_WHOLE)

    def invalidate(self) -> None:
        """Marks the last snapshot as not whole: the next command must not be settled by it."""
        with contextlib.suppress(FileNotFoundError):
            os.replace(os.path.join(self._folder, _WHOLE), os.path.join(self._folder, _PARTIAL))

    def forget(self) -> None:
        """Begins anew."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self) -> None:
        try:
            if os.path.isdir(self._folder) and self.git.packs > _MAX_PACKS:
                self.forget()
        except OSError:
            self.forget()
        make_private(self._folder)
        self.git.make()

    def _read(self, name: str) -> SnapshotTable | None:
        try:
            with open(os.path.join(self._folder, name), "rb") as file:
                return _decode(file.read())
        except (OSError, msgspec.DecodeError):
            return None

    def _write(self, name: str, table: SnapshotTable) -> None:
        write_private(os.path.join(self._folder, name), _encode(table), ".new")

    def _look(self, patience: SnapshotDeadline) -> Scan:
        ignored = self.git.ignored(self.root.path, patience)
        left_out = dict.fromkeys(ignored, _IGNORED)
        found = scan(self.root, patience, left_out=left_out, others=self._others, kernel=self.kernel)
        left, left_bytes = MAX_IGNORED_PATHS, MAX_IGNORED_BYTES
        for path in sorted(path for path, why in found.uncovered.items() if why == _IGNORED):
            inside = self._ignored(path, found.seen[path], patience, left)
            size = sum(mark.size for mark in inside.marks.values()) if inside else 0
            if inside is not None and size <= left_bytes and len(inside.marks) <= left:
                left, left_bytes = left - len(inside.marks), left_bytes - size
                del found.uncovered[path]
                found.marks.update(inside.marks)
                found.uncovered.update(inside.uncovered)
                found.seen.update(inside.seen)
        return found

    def _ignored(self, path: str, mark: PathStat, patience: SnapshotDeadline, most: int) -> Scan | None:
        """An ignored file, or an ignored folder with all that is in it; None where that is too much to be kept."""
        if why := describe_uncovered(path, mark):
            return Scan({}, {path: why}, {path: mark})
        if mark.kind != "folder":
            return Scan({path: mark}, {}, {})
        try:
            inside = scan(
                self.root, patience, left_out={}, others=self._others, kernel=self.kernel, start=path, most=most
            )
        except SnapshotLimitError:
            patience.check()
            return None
        if path not in inside.uncovered:
            inside.marks[path] = mark
        return inside


class _Taking:
    """One snapshot that is being taken."""

    def __init__(self, shots: RootSnapshots, before: SnapshotTable | None, patience: SnapshotDeadline) -> None:
        self._shots = shots
        self._known = before.kept if before else {}
        self._known_at = before.taken if before else 0
        self._patience = patience
        self._taken = time.time_ns()
        self._kept: dict[bytes, SnapshotEntry] = {}
        self._lost: dict[str, str] = {}
        self._bytes = 0
        self._storing: IO[bytes] | None = None

    def take_all(self, marks: dict[str, PathStat], stack: contextlib.ExitStack) -> None:
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
                self._patience.check()

    def table(self, uncovered: dict[str, str]) -> SnapshotTable:
        told = {os.fsencode(path): why for path, why in (uncovered | self._lost).items()}
        return SnapshotTable(self._taken, self._kept, told)

    def _keep(self, path: str, name: bytes, mark: PathStat, stack: contextlib.ExitStack) -> None:
        try:
            now, data = read_content(self._shots.root, path, mark, kernel=self._shots.kernel)
        except OSError:
            self._lost[path] = "a file that cannot be read"
            return
        self._bytes += len(data)
        if self._bytes > MAX_SNAPSHOT_BYTES:
            raise SnapshotLimitError
        if self._storing is None:
            self._storing = stack.enter_context(self._shots.git.storing(self._patience))
        try:
            self._storing.write(format_blob(data))
        except BrokenPipeError:
            raise GitError("git ended while contents were kept") from None
        named = hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).digest()
        self._kept[name] = SnapshotEntry(now, hashlib.sha256(data).digest(), named)
