"""Where nothing can be kept beforehand: names, sizes and times tell what changed, and bring nothing back."""

from typing import NamedTuple

from handrail.changes.snapshots.marks import PathStat
from handrail.changes.snapshots.patience import SnapshotDeadline
from handrail.changes.snapshots.scanning import scan
from handrail.protocol.changes import Action, Change
from handrail.workspace.roots import Root

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
