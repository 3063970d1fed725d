"""Takes a snapshot of the roots."""

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime

import msgspec

from handrail.changes.history import History
from handrail.changes.model import PLAIN_OVERLAY_PLACEMENT, OverlayChanges
from handrail.changes.overlay.changes import add_link_target
from handrail.changes.snapshot.compare import Comparison, SnapshotDifference, compare_snapshot
from handrail.changes.snapshot.git_store import find_git
from handrail.changes.snapshot.scan import AFTER_SECONDS, BEFORE_SECONDS, SnapshotDeadline, SnapshotError
from handrail.changes.snapshot.tables import RootSnapshots, SnapshotTable
from handrail.protocol.changes import Change
from handrail.protocol.errors import StoreError
from handrail.store.change_log import FileExtras
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace


class UncoveredPath(msgspec.Struct, frozen=True):
    """Something that a snapshot does not hold."""

    path: str
    """Absolute."""
    shown: str
    """As results name it."""
    why: str


class SnapshotChanges(msgspec.Struct, frozen=True):
    """What is different since a snapshot."""

    examined: OverlayChanges
    was: tuple[FileExtras, ...]
    """Which of the files were one file."""
    lost: tuple[str, ...]
    """What was not covered and is gone, as results name it."""
    missed: dict[str, str]
    """What has come and is not covered, with the reason in words."""


class Snapshot:
    """What the writable roots of a workspace were."""

    def __init__(self, workspace: Workspace, taken: list[tuple[RootSnapshots, SnapshotTable]]) -> None:
        self._workspace = workspace
        self._taken = taken

    def uncovered(self) -> Iterator[UncoveredPath]:
        """What it does not hold."""
        for shots, table in self._taken:
            for name, why in table.uncovered.items():
                path = os.fsdecode(name)
                yield UncoveredPath(os.path.join(shots.root.path, path), shots.root.display_path(path), why)

    def compare(self, history: History, *, tidy: bool = False) -> SnapshotChanges:
        """What is different now; what it takes to go back is kept from then on. SnapshotError where nobody can tell.
        `tidy`: what the command closed is opened, and pipes that it made are removed."""
        patience = SnapshotDeadline(AFTER_SECONDS)
        try:
            found = [compare_snapshot(shots, table, history.blobs, patience, tidy=tidy) for shots, table in self._taken]
        except (OSError, StoreError) as error:
            raise SnapshotError(f"what was there could not be kept ({error})") from error
        lost = tuple(path for one in found for path in one.lost)
        missed = {path: why for one in found for path, why in one.missed.items()}
        was = tuple(was for one in found for was in one.was)
        return SnapshotChanges(_examined(self._workspace, self._taken, found), was, lost, missed)


def take_snapshot(workspace: Workspace, history: History) -> Snapshot:
    """Keeps what a command may change; SnapshotError where that cannot be, or takes too long."""
    patience, roots = SnapshotDeadline(BEFORE_SECONDS), tuple(_shots(workspace, history))
    try:
        return Snapshot(workspace, [(shots, shots.take(patience)) for shots in roots])
    except (OSError, StoreError, SnapshotError) as error:
        for shots in roots:  # the command may run all the same, and must not be settled by some of its roots
            shots.invalidate()
        known = isinstance(error, SnapshotError)
        raise error if known else SnapshotError(f"what is there could not be kept ({error})") from error


def load_last_snapshot(workspace: Workspace, history: History, *, since: datetime, until: datetime) -> Snapshot:
    """The whole snapshots taken of the roots between two times; SnapshotError if there is none."""
    taken = [(shots, shots.last()) for shots in _shots(workspace, history)]
    times = (since.timestamp() * 1e9, until.timestamp() * 1e9)
    whole = [(shots, table) for shots, table in taken if table is not None and times[0] <= table.taken <= times[1]]
    if not whole:
        raise SnapshotError("what was there is not kept any more")
    return Snapshot(workspace, whole)


def list_nested_roots(root: Root, workspace: Workspace) -> frozenset[str]:
    """The other roots that lie in a root, by their paths below it."""
    inside = (other.path for other in workspace.roots if other.path.startswith(f"{root.path.rstrip('/')}/"))
    return frozenset(os.path.relpath(path, root.path) for path in inside)


def _shots(workspace: Workspace, history: History) -> Iterator[RootSnapshots]:
    program = find_git()
    if program is None:
        raise SnapshotError("git is not installed")
    for root in workspace.roots:
        if root.writable:
            name = hashlib.sha256(os.fsencode(root.path)).hexdigest()[:16]
            folder = os.path.join(history.folder, "snapshots", name)
            yield RootSnapshots(
                root, folder, program, others=list_nested_roots(root, workspace), kernel=workspace.kernel
            )


def _change(workspace: Workspace, one: SnapshotDifference) -> Change:
    return add_link_target(workspace, one.step.path, one.change, one.target)


def _examined(
    workspace: Workspace, taken: list[tuple[RootSnapshots, SnapshotTable]], found: list[Comparison]
) -> OverlayChanges:
    differences = [difference for one in found for difference in one.differences]
    return OverlayChanges(
        started=min((table.taken for _, table in taken), default=0),
        steps=tuple(one.step for one in differences),
        manners=(PLAIN_OVERLAY_PLACEMENT,) * len(differences),
        changes=tuple(_change(workspace, one) for one in differences),
        diffs=tuple(one.diff for one in differences),
    )
