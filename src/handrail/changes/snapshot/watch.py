"""Watches the roots while a command runs on the files themselves."""

from typing import NamedTuple

from handrail.changes.history import History
from handrail.changes.model import OverlayChanges
from handrail.changes.recorder import RecordedChangeSet
from handrail.changes.recovery import recover_change_set
from handrail.changes.snapshot.compare import Manifest, compare_manifests, compare_snapshot, read_manifest
from handrail.changes.snapshot.scan import SnapshotError
from handrail.changes.snapshot.snapshot import Snapshot, UncoveredPath, open_scanner, take_snapshot
from handrail.protocol.changes import Change, ChangeSet
from handrail.store.change_log import ChangeSetRecord, FileExtras
from handrail.workspace.workspace import Workspace


class CommandWatchResult(NamedTuple):
    """The changes of a command."""

    examined: OverlayChanges | None
    """Changes that can be undone. None without a snapshot."""
    changes: tuple[Change, ...]
    """Changes as far as they are known."""
    was: tuple[FileExtras, ...] = ()
    """The hard links of changed files."""
    uncovered: tuple[UncoveredPath, ...] = ()
    lost: tuple[str, ...] = ()
    """Uncovered paths that are gone."""
    why: str = ""
    """Why the changes cannot be undone, in words."""


class CommandWatch:
    """The state of the roots before a command, as a snapshot or else as a manifest."""

    def __init__(self, workspace: Workspace, history: History) -> None:
        """The caller holds the lock on the workspace."""
        self._workspace = workspace
        self._history = history
        self.snapshot: Snapshot | None = None
        self.why = ""
        """Why there is no snapshot, in words."""
        self._manifests: list[Manifest] | None = None
        for entry in history.log.list_begun():
            if not entry.body.steps:  # its process was killed, since we hold the lock
                recover_change_set(workspace, history, entry.number)
        try:
            self.snapshot = take_snapshot(workspace, history)
        except SnapshotError as error:
            self.why = str(error)
            self._manifests = self._read_manifests()

    def uncovered(self) -> tuple[UncoveredPath, ...]:
        """The present paths that undo could not restore."""
        return tuple(self.snapshot.uncovered()) if self.snapshot is not None else ()

    def finish(self, *, tidy: bool = False) -> CommandWatchResult:
        """The changes of the command. `tidy`: as in `compare_snapshot`, for a command without approval."""
        if self.snapshot is None:
            return CommandWatchResult(None, self._compare_manifests(), why=self.why)
        try:
            found = compare_snapshot(self.snapshot, self._history, tidy=tidy)
        except SnapshotError as error:
            return CommandWatchResult(None, (), uncovered=self.uncovered(), why=str(error))
        missed = (UncoveredPath("", path, why) for path, why in found.missed.items())
        uncovered = (*self.uncovered(), *missed)
        return CommandWatchResult(found.examined, found.examined.changes, found.was, uncovered, found.lost)

    def _read_manifests(self) -> list[Manifest] | None:
        roots = [root for root in self._workspace.roots if root.writable]
        try:
            return [read_manifest(open_scanner(root, self._workspace)) for root in roots]
        except SnapshotError:
            return None

    def _compare_manifests(self) -> tuple[Change, ...]:
        before, after = self._manifests, self._read_manifests() if self._manifests is not None else None
        if before is None or after is None:
            return ()
        return tuple(change for old, new in zip(before, after, strict=True) for change in compare_manifests(old, new))


def finish_command(
    history: History,
    number: int,
    summary: str,
    examined: OverlayChanges,
    was: tuple[FileExtras, ...],
    not_covered: tuple[str, ...] = (),
) -> RecordedChangeSet | None:
    """Completes the record of a command. None if it changed nothing."""
    record = ChangeSetRecord("exec", summary, examined.steps, examined.changes, not_covered=not_covered, was=was)
    return _finish(history, number, record, examined.diffs)


def finish_without_undo(
    history: History, number: int, summary: str, changes: tuple[Change, ...]
) -> RecordedChangeSet | None:
    """The same for changes that cannot be undone."""
    return _finish(history, number, ChangeSetRecord("exec", summary, (), changes, undoable=False), None)


def _finish(
    history: History, number: int, record: ChangeSetRecord, diffs: tuple[str, ...] | None
) -> RecordedChangeSet | None:
    if not record.changes:
        history.log.drop(number)
        return None
    history.log.finish(number, record, diffs)
    made = ChangeSet(changes=record.changes, number=number, undoable=record.undoable, not_covered=record.not_covered)
    return RecordedChangeSet(made)
