"""Watches one command by snapshots."""

from typing import NamedTuple

from handrail.changes.history import History
from handrail.changes.model import OverlayChanges
from handrail.changes.recorder import RecordedChangeSet
from handrail.changes.recovery import recover_change_set
from handrail.changes.snapshot.compare import Manifest, compare_manifests, read_manifest
from handrail.changes.snapshot.scan import SnapshotError
from handrail.changes.snapshot.snapshot import Snapshot, UncoveredPath, list_nested_roots, take_snapshot
from handrail.protocol.changes import Change, ChangeSet
from handrail.store.change_log import ChangeSetRecord, FileExtras
from handrail.workspace.workspace import Workspace

# § [changes.snapshots.watch] Watches the roots while a command runs on the files themselves: by a snapshot, or else
# § by a manifest.


class CommandWatchResult(NamedTuple):
    """What became of the roots."""

    examined: OverlayChanges | None
    """What changed, with all that it takes to go back; None where that is not there."""
    changes: tuple[Change, ...]
    """What changed, as far as it is known."""
    was: tuple[FileExtras, ...] = ()
    """Which of the files were one file."""
    uncovered: tuple[UncoveredPath, ...] = ()
    lost: tuple[str, ...] = ()
    """What was not covered and is gone."""
    why: str = ""
    """Why nobody can go back, in words."""


class CommandWatch:
    """What the roots were before a command."""

    def __init__(self, workspace: Workspace, history: History) -> None:
        """To be made while nobody else changes the workspace."""
        self._workspace = workspace
        self._history = history
        self.snapshot: Snapshot | None = None
        self.why = ""
        """Why there is no snapshot, in words."""
        self._manifests: list[Manifest] | None = None
        for entry in history.log.list_begun():
            if not entry.body.steps:  # whoever began it was killed: nobody else is at work here
                recover_change_set(workspace, history, entry.number)
        try:
            self.snapshot = take_snapshot(workspace, history)
        except SnapshotError as error:
            self.why = str(error)
            self._manifests = self._listed()

    def uncovered(self) -> tuple[UncoveredPath, ...]:
        """What is there and could not be brought back."""
        return tuple(self.snapshot.uncovered()) if self.snapshot is not None else ()

    def finish(self, *, tidy: bool = False) -> CommandWatchResult:
        """What changed since. `tidy`: what the command closed is opened, and pipes that it made are removed, so that
        nothing is hidden by them; for a command that nobody was asked about."""
        if self.snapshot is None:
            return CommandWatchResult(None, self._told(), why=self.why)
        try:
            found = self.snapshot.compare(self._history, tidy=tidy)
        except SnapshotError as error:
            return CommandWatchResult(None, (), uncovered=self.uncovered(), why=str(error))
        missed = (UncoveredPath("", path, why) for path, why in found.missed.items())
        return CommandWatchResult(
            found.examined, found.examined.changes, found.was, (*self.uncovered(), *missed), found.lost
        )

    def _listed(self) -> list[Manifest] | None:
        workspace = self._workspace
        try:
            return [
                read_manifest(root, list_nested_roots(root, workspace), kernel=workspace.kernel)
                for root in workspace.roots
                if root.writable
            ]
        except SnapshotError:
            return None

    def _told(self) -> tuple[Change, ...]:
        before, after = self._manifests, self._listed() if self._manifests is not None else None
        if before is None or after is None:
            return ()
        return tuple(change for old, new in zip(before, after, strict=True) for change in compare_manifests(old, new))


# § [changes.snapshots.recording] Writes down what a command did to the files themselves. That it runs is on the
# § record before it starts, what it changed only afterwards: of one that was cut off, the snapshot from before
# § tells.


def finish_command(
    history: History,
    number: int,
    summary: str,
    examined: OverlayChanges,
    was: tuple[FileExtras, ...],
    not_covered: tuple[str, ...] = (),
) -> RecordedChangeSet | None:
    """Writes down what it changed; None where that is nothing."""
    if not examined.steps:
        history.log.drop(number)
        return None
    body = ChangeSetRecord("exec", summary, examined.steps, examined.changes, not_covered=not_covered, was=was)
    history.log.finish(number, body, examined.diffs)
    return RecordedChangeSet(ChangeSet(changes=examined.changes, number=number, undoable=True, not_covered=not_covered))


def finish_without_undo(
    history: History, number: int, summary: str, changes: tuple[Change, ...]
) -> RecordedChangeSet | None:
    """The same where there is no way back."""
    if not changes:
        history.log.drop(number)
        return None
    history.log.finish(number, ChangeSetRecord("exec", summary, (), changes, undoable=False))
    return RecordedChangeSet(ChangeSet(changes=changes, number=number, undoable=False))
