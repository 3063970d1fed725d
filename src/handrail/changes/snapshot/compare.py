"""Compares roots with a snapshot."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from handrail.changes.model import build_change
from handrail.changes.snapshot.git_store import GitError
from handrail.changes.snapshot.scan import (
    MAX_FILE_BYTES,
    OTHER,
    PathStat,
    Scan,
    SnapshotDeadline,
    SnapshotEntry,
    hash_file,
    is_unchanged,
    read_content,
    scan,
)
from handrail.changes.snapshot.tables import RootSnapshots, SnapshotTable
from handrail.edit.diff import Diff, build_unified_diff
from handrail.protocol.changes import Action, Change, State
from handrail.store.blobs import Blobs
from handrail.store.change_log import FileExtras, Step
from handrail.workspace.roots import Root
from handrail.workspace.text import decode_text

# § [changes.snapshots.comparing] Compares a root with the snapshot that was taken of it, and keeps what it takes to
# § go back.

_MAX_DIFFED_BYTES = 1 << 20
"""Bytes of a file whose lines are compared."""
_NO_DIFF = Diff("", 0, 0)


class SnapshotDifference(NamedTuple):
    """One path that is another now."""

    step: Step
    change: Change
    diff: str
    target: str | None = None
    """Where a link leads now."""


class Comparison(NamedTuple):
    """What a command changed in one root."""

    differences: list[SnapshotDifference]
    was: list[FileExtras]
    """Which of the files were one file."""
    lost: list[str]
    """What was not covered and is gone, as results name it."""
    missed: dict[str, str]
    """What has come and is not covered, with the reason in words."""


class _ChangedPath(NamedTuple):
    path: str
    before: SnapshotEntry | None
    after: State | None
    new: bytes | None


def compare_snapshot(
    shots: RootSnapshots, table: SnapshotTable, blobs: Blobs, patience: SnapshotDeadline, *, tidy: bool = False
) -> Comparison:
    """Every path that is another now than in the snapshot; what it was before is in `blobs` from then on. `tidy`: what
    the command closed is opened, and pipes that it made are removed, so that nothing is hidden by them."""
    now = shots.look_again(table, patience, tidy=tidy)
    found = [one for one in _changed(shots, table, now, patience) if _differs(one)]
    wanted = [one.before.object for one in found if one.before is not None and one.before.object]
    contents = shots.git.contents(wanted, patience)
    differences = [_difference(shots, one, _old(one, contents, blobs)) for one in found]
    shown = shots.root.display_path
    missed = {shown(path): why for path, why in now.uncovered.items() if os.fsencode(path) not in table.uncovered}
    return Comparison(
        differences, list(_one_file(shots, table, found)), [shown(path) for path in _lost(table, now)], missed
    )


def _changed(
    shots: RootSnapshots, table: SnapshotTable, now: Scan, patience: SnapshotDeadline
) -> Iterator[_ChangedPath]:
    names = {os.fsencode(path): path for path in now.marks}
    for number, name in enumerate(sorted(table.kept.keys() | names.keys())):
        if number % 256 == 0:
            patience.check()
        before, path = table.kept.get(name), os.fsdecode(name)
        mark = now.marks.get(path)
        if before is not None and mark is not None and is_unchanged(before.mark, mark, table.taken):
            continue
        if mark is None and now.uncovered and _is_hidden(path, now.uncovered):
            continue  # it is there, or may be: nobody can look any more
        yield _ChangedPath(path, before, *_state(shots, path, mark, before, patience))


def _is_hidden(path: str, places: Mapping[str, str]) -> bool:
    """Whether it is in something that nobody looked into. A pipe holds nothing: what was in its place is gone."""
    while path and path not in places:
        path = path.rpartition("/")[0]
    return bool(path) and places[path] != OTHER


def _state(
    shots: RootSnapshots, path: str, mark: PathStat | None, before: SnapshotEntry | None, patience: SnapshotDeadline
) -> tuple[State | None, bytes | None]:
    if mark is None or mark.kind == "other":
        return None, None
    if mark.kind == "folder":
        return State(kind="folder", mode=mark.mode), None
    try:
        if mark.size > MAX_FILE_BYTES:
            mark, digest = hash_file(shots.root, path, patience, kernel=shots.kernel)
            return State(kind="file", hash=digest, size=mark.size, mode=mark.mode), None
        mark, data = read_content(shots.root, path, mark, kernel=shots.kernel)
    except FileNotFoundError:
        return None, None
    except OSError:  # it may not be read any more: it is taken to hold what it did
        digest = before.hash.hex() if before is not None else ""
        return State(kind="file", hash=digest, size=mark.size, mode=mark.mode), None
    kind, mode = ("link", None) if mark.kind == "link" else ("file", mark.mode)
    return State(kind=kind, hash=hashlib.sha256(data).hexdigest(), size=len(data), mode=mode), data


def _before(kept: SnapshotEntry | None) -> State | None:
    if kept is None or kept.mark.kind == "other":
        return None
    kind, mark = kept.mark.kind, kept.mark
    return State(kind=kind, hash=kept.hash.hex(), size=mark.size, mode=mark.mode if kind != "link" else None)


def _differs(one: _ChangedPath) -> bool:
    return _before(one.before) != one.after


def _old(one: _ChangedPath, contents: Iterator[bytes | None], blobs: Blobs) -> bytes | None:
    """What was there before, kept for undo under its hash."""
    if one.before is None or not one.before.object:
        return None
    data = next(contents)
    digest = one.before.hash.hex()
    if data is None or hashlib.sha256(data).hexdigest() != digest:
        raise GitError("it gives back something else")
    blobs.keep(digest, data, pack=True)
    return data if one.before.mark.kind == "file" else None


def _difference(shots: RootSnapshots, one: _ChangedPath, old: bytes | None) -> SnapshotDifference:
    step = Step(_spelled(shots, os.fsencode(one.path)), _before(one.before), one.after)
    shown = shots.root.display_path(one.path)
    after = one.after
    target = os.fsdecode(one.new) if after is not None and after.kind == "link" and one.new is not None else None
    is_large = after is not None and after.kind == "file" and one.new is None
    diff, binary = (_NO_DIFF, False) if is_large else _diff(old, one.new if target is None else None, shown)
    return SnapshotDifference(step, build_change(step, shown, diff, binary=binary), diff.text, target)


def _one_file(shots: RootSnapshots, table: SnapshotTable, found: list[_ChangedPath]) -> Iterator[FileExtras]:
    """The names of a file that had several, each with one that it was another name of: if there is one, one that has
    not changed."""
    names: dict[int, list[bytes]] = {one.before.mark.inode: [] for one in found if one.before is not None}
    for name, kept in table.kept.items():
        if kept.mark.kind == "file" and kept.mark.inode in names:
            names[kept.mark.inode].append(name)
    changed = {os.fsencode(one.path) for one in found}
    for group in names.values():
        first = next((name for name in group if name not in changed), group[0] if group else b"")
        for name in group:
            if name in changed and name != first:
                yield FileExtras(_spelled(shots, name), {}, _spelled(shots, first))


def _spelled(shots: RootSnapshots, name: bytes) -> bytes:
    """A path as steps name it."""
    return name if shots.root.main else os.path.join(os.fsencode(shots.root.path), name)


def _diff(old: bytes | None, new: bytes | None, shown: str) -> tuple[Diff, bool]:
    if max(len(old or b""), len(new or b"")) > _MAX_DIFFED_BYTES:
        return _NO_DIFF, False
    texts = [decode_text(data) if data is not None else None for data in (old, new)]
    if any(text is None and data is not None for text, data in zip(texts, (old, new), strict=True)):
        return _NO_DIFF, True
    before, after = (text.text if text is not None else None for text in texts)
    return build_unified_diff(before, after, shown), False


def _lost(table: SnapshotTable, now: Scan) -> Iterator[str]:
    for name, why in table.uncovered.items():
        path = os.fsdecode(name)
        if path not in now.uncovered and path not in now.marks and why != OTHER:
            yield path


# § [changes.snapshots.manifest] Where nothing can be kept beforehand: names, sizes and times tell what changed, and
# § bring nothing back.

_MAX_SCAN_SECONDS = 5.0


class Manifest(NamedTuple):
    """What was in a root, by paths below it."""

    root: Root
    marks: dict[str, PathStat]


def read_manifest(root: Root, others: frozenset[str], *, kernel: bool) -> Manifest:
    """What is in a root now; SnapshotError where that takes too long."""
    return Manifest(
        root, scan(root, SnapshotDeadline(_MAX_SCAN_SECONDS), left_out={}, others=others, kernel=kernel).marks
    )


def compare_manifests(before: Manifest, after: Manifest) -> tuple[Change, ...]:
    """What changed, as far as that can be told without the contents."""
    names = sorted(before.marks.keys() | after.marks.keys())
    return tuple(
        _change(before, after, name, action)
        for name in names
        if (action := _action(before.marks.get(name), after.marks.get(name))) is not None
    )


def _action(before: PathStat | None, after: PathStat | None) -> Action | None:
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


def _change(before: Manifest, after: Manifest, name: str, action: Action) -> Change:
    mark = after.marks.get(name) or before.marks[name]
    is_there = name in after.marks
    return Change(
        path=before.root.display_path(name),
        action=action,
        kind=mark.kind if mark.kind != "other" else "file",
        size=mark.size if is_there and mark.kind != "folder" else None,
        mode=mark.mode if is_there and mark.kind != "link" else None,
    )
