"""Compares the roots of a workspace with a snapshot."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from handrail.changes.history import History
from handrail.changes.model import PLAIN_OVERLAY_PLACEMENT, OverlayChanges, build_change
from handrail.changes.overlay.changes import add_link_target
from handrail.changes.snapshot.git_store import GitError
from handrail.changes.snapshot.scan import (
    AFTER_SECONDS,
    MAX_FILE_BYTES,
    OTHER,
    PathStat,
    RootScanner,
    Scan,
    SnapshotDeadline,
    SnapshotError,
    is_unchanged,
)
from handrail.changes.snapshot.snapshot import RootSnapshots, Snapshot, SnapshotEntry, SnapshotTable
from handrail.edit.diff import NO_DIFF, Diff, build_unified_diff
from handrail.protocol.changes import Action, Change, State
from handrail.protocol.errors import StoreError
from handrail.store.blobs import Blobs
from handrail.store.change_log import FileExtras, Step
from handrail.workspace.roots import Root
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

_MAX_DIFFED_BYTES = 1 << 20
_MAX_MANIFEST_SECONDS = 5.0


class SnapshotChanges(msgspec.Struct, frozen=True):
    examined: OverlayChanges
    was: tuple[FileExtras, ...]
    """The hard links of changed files."""
    lost: tuple[str, ...]
    """Uncovered paths that are gone."""
    missed: dict[str, str]
    """New paths that are not covered, with the reason in words."""


def compare_snapshot(snapshot: Snapshot, history: History, *, tidy: bool = False) -> SnapshotChanges:
    """The changes since a snapshot. The old contents are kept in the history for undo. SnapshotError if that fails.

    `tidy`: paths that the command locked are unlocked, and its pipes are removed, so that they hide nothing.
    """
    deadline = SnapshotDeadline(AFTER_SECONDS)
    roots = [_RootComparison(snapshot.workspace, *pair) for pair in snapshot.tables]
    try:
        for root in roots:
            root.run(history.blobs, deadline, tidy=tidy)
    except (OSError, StoreError) as error:
        raise SnapshotError(f"the old content could not be stored ({error})") from error
    differences = [one for root in roots for one in root.differences]
    examined = OverlayChanges(
        started=min((table.taken for _, table in snapshot.tables), default=0),
        steps=tuple(one.step for one in differences),
        manners=(PLAIN_OVERLAY_PLACEMENT,) * len(differences),
        changes=tuple(one.change for one in differences),
        diffs=tuple(one.diff for one in differences),
    )
    extras = tuple(extras for root in roots for extras in root.extras)
    lost = tuple(path for root in roots for path in root.lost)
    return SnapshotChanges(examined, extras, lost, {path: why for root in roots for path, why in root.missed.items()})


class _Difference(NamedTuple):
    step: Step
    change: Change
    diff: str


class _ChangedPath(NamedTuple):
    path: str
    before: SnapshotEntry | None
    after: State | None
    new: bytes | None
    """The new content, if it is small."""


class _RootComparison:
    def __init__(self, workspace: Workspace, snapshots: RootSnapshots, table: SnapshotTable) -> None:
        self._workspace = workspace
        self._snapshots = snapshots
        self._scanner = snapshots.scanner
        self._root = snapshots.scanner.root
        self._table = table
        self.differences: list[_Difference] = []
        self.extras: list[FileExtras] = []
        self.lost: list[str] = []
        self.missed: dict[str, str] = {}

    def run(self, blobs: Blobs, deadline: SnapshotDeadline, *, tidy: bool) -> None:
        table, shown = self._table, self._root.display_path
        left_out = {os.fsdecode(path): why for path, why in table.uncovered.items()}
        now = self._scanner.scan(deadline, left_out=left_out, everything=True, tidy=tidy)
        changed = [one for one in self._list_changed(now, deadline) if _build_old_state(one.before) != one.after]
        objects = [one.before.object for one in changed if one.before is not None and one.before.object]
        contents = self._snapshots.git.contents(objects, deadline)
        self.differences = [self._build_difference(one, _keep_old(one, contents, blobs)) for one in changed]
        self.extras = list(self._list_links(changed))
        self.lost = [shown(path) for path in _list_lost(table, now)]
        self.missed = {shown(path): why for path, why in now.uncovered.items() if path not in left_out}

    def _list_changed(self, now: Scan, deadline: SnapshotDeadline) -> Iterator[_ChangedPath]:
        table = self._table
        for number, name in enumerate(sorted(table.kept.keys() | {os.fsencode(path) for path in now.marks})):
            if number % 256 == 0:
                deadline.check()
            before, path = table.kept.get(name), os.fsdecode(name)
            mark = now.marks.get(path)
            if before is not None and mark is not None and is_unchanged(before.mark, mark, table.taken):
                continue
            if mark is None and now.uncovered and _is_hidden(path, now.uncovered):
                continue  # it may still be there, but cannot be read
            yield _ChangedPath(path, before, *self._read_state(path, mark, before, deadline))

    def _read_state(
        self, path: str, mark: PathStat | None, before: SnapshotEntry | None, deadline: SnapshotDeadline
    ) -> tuple[State | None, bytes | None]:
        if mark is None or mark.kind == "other":
            return None, None
        if mark.kind == "folder":
            return State(kind="folder", mode=mark.mode), None
        try:
            if mark.size > MAX_FILE_BYTES:
                mark, digest = self._scanner.hash_file(path, deadline)
                return State(kind="file", hash=digest, size=mark.size, mode=mark.mode), None
            mark, data = self._scanner.read_content(path, mark)
        except FileNotFoundError:
            return None, None
        except OSError:  # it may not be read any more, so its content counts as unchanged
            digest = before.hash.hex() if before is not None else ""
            return State(kind="file", hash=digest, size=mark.size, mode=mark.mode), None
        kind, mode = ("link", None) if mark.kind == "link" else ("file", mark.mode)
        return State(kind=kind, hash=hashlib.sha256(data).hexdigest(), size=len(data), mode=mode), data

    def _build_difference(self, one: _ChangedPath, old: bytes | None) -> _Difference:
        after, shown = one.after, self._root.display_path(one.path)
        step = Step(self._build_step_path(os.fsencode(one.path)), _build_old_state(one.before), after)
        target = os.fsdecode(one.new) if after is not None and after.kind == "link" and one.new is not None else None
        is_large = after is not None and after.kind == "file" and one.new is None
        diff, binary = (NO_DIFF, False) if is_large else _build_diff(old, one.new if target is None else None, shown)
        change = build_change(step, shown, diff, binary=binary)
        return _Difference(step, add_link_target(self._workspace, step.path, change, target), diff.text)

    def _list_links(self, changed: list[_ChangedPath]) -> Iterator[FileExtras]:
        """The changed names of files with several names, each with the name to link to: an unchanged one, if any."""
        names: dict[int, list[bytes]] = {one.before.mark.inode: [] for one in changed if one.before is not None}
        for name, entry in self._table.kept.items():
            if entry.mark.kind == "file" and entry.mark.inode in names:
                names[entry.mark.inode].append(name)
        paths = {os.fsencode(one.path) for one in changed}
        for group in names.values():
            first = next((name for name in group if name not in paths), group[0] if group else b"")
            for name in group:
                if name in paths and name != first:
                    yield FileExtras(self._build_step_path(name), {}, self._build_step_path(first))

    def _build_step_path(self, name: bytes) -> bytes:
        return name if self._root.main else os.path.join(os.fsencode(self._root.path), name)


def _is_hidden(path: str, uncovered: Mapping[str, str]) -> bool:
    """Whether a path is in a folder that was not read. A pipe is none, so a file that it replaced is gone."""
    while path and path not in uncovered:
        path = path.rpartition("/")[0]
    return bool(path) and uncovered[path] != OTHER


def _build_old_state(entry: SnapshotEntry | None) -> State | None:
    if entry is None or entry.mark.kind == "other":
        return None
    kind, mark = entry.mark.kind, entry.mark
    return State(kind=kind, hash=entry.hash.hex(), size=mark.size, mode=mark.mode if kind != "link" else None)


def _keep_old(one: _ChangedPath, contents: Iterator[bytes | None], blobs: Blobs) -> bytes | None:
    """Keeps the old content for undo. Returns the bytes of a file."""
    if one.before is None or not one.before.object:
        return None
    data = next(contents)
    digest = one.before.hash.hex()
    if data is None or hashlib.sha256(data).hexdigest() != digest:
        raise GitError("git returned other content")
    blobs.keep(digest, data, pack=True)
    return data if one.before.mark.kind == "file" else None


def _build_diff(old: bytes | None, new: bytes | None, shown: str) -> tuple[Diff, bool]:
    """The diff of two contents, and whether one is binary."""
    if max(len(old or b""), len(new or b"")) > _MAX_DIFFED_BYTES:
        return NO_DIFF, False
    texts = [decode_text(data) if data is not None else None for data in (old, new)]
    if any(text is None and data is not None for text, data in zip(texts, (old, new), strict=True)):
        return NO_DIFF, True
    before, after = (text.text if text is not None else None for text in texts)
    return build_unified_diff(before, after, shown), False


def _list_lost(table: SnapshotTable, now: Scan) -> Iterator[str]:
    for name, why in table.uncovered.items():
        path = os.fsdecode(name)
        if path not in now.uncovered and path not in now.marks and why != OTHER:
            yield path


# Without a snapshot, a manifest of sizes and times tells which paths changed. It cannot restore them.


class Manifest(NamedTuple):
    root: Root
    marks: dict[str, PathStat]


def read_manifest(scanner: RootScanner) -> Manifest:
    """The manifest of a root. SnapshotError if it takes too long."""
    return Manifest(scanner.root, scanner.scan(SnapshotDeadline(_MAX_MANIFEST_SECONDS), left_out={}).marks)


def compare_manifests(before: Manifest, after: Manifest) -> tuple[Change, ...]:
    names = sorted(before.marks.keys() | after.marks.keys())
    return tuple(
        _build_manifest_change(before, after, name, action)
        for name in names
        if (action := _classify_marks(before.marks.get(name), after.marks.get(name))) is not None
    )


def _classify_marks(before: PathStat | None, after: PathStat | None) -> Action | None:
    if before is None or after is None:
        return "created" if before is None else "deleted"
    if before.kind != after.kind:
        return "link" if "link" in {before.kind, after.kind} else "modified"
    if before.kind == "folder":
        return "mode" if before.mode != after.mode else None
    same = (before.size, before.mtime, before.inode) == (after.size, after.mtime, after.inode)
    if same and before.ctime != after.ctime and before.mode != after.mode:
        return "mode"
    return None if before == after else "modified"


def _build_manifest_change(before: Manifest, after: Manifest, name: str, action: Action) -> Change:
    mark = after.marks.get(name) or before.marks[name]
    exists = name in after.marks
    return Change(
        path=before.root.display_path(name),
        action=action,
        kind=mark.kind if mark.kind != "other" else "file",
        size=mark.size if exists and mark.kind != "folder" else None,
        mode=mark.mode if exists and mark.kind != "link" else None,
    )
