"""Writes down what a command did to the files themselves. That it runs is on the record before it starts, what it
changed only afterwards: of one that was cut off, the snapshot from before tells."""

from handrail.changes.history import History
from handrail.changes.layered.trial import OverlayChanges
from handrail.changes.recorder import RecordedChangeSet
from handrail.protocol.changes import Change, ChangeSet
from handrail.store.change_log import ChangeSetRecord, FileExtras


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
