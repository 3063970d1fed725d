"""Writes down what a command did to the files themselves. That it runs is on the record before it starts, what it
changed only afterwards: of one that was cut off, the snapshot from before tells."""

from datetime import timedelta

import msgspec

from handrail.changes.history import History
from handrail.changes.layered.trial import Examined
from handrail.changes.recorder import Recorded
from handrail.changes.snapshots.patience import BEFORE_SECONDS, SnapshotError
from handrail.changes.snapshots.snapshot import last_snapshot
from handrail.process.abandoned import end_abandoned
from handrail.protocol.change import Change, ChangeSet
from handrail.store.change_log import Body, Entry, Was
from handrail.workspace.workspace import Workspace

_CUT_OFF = "(cut off)"


def finish_command(
    history: History,
    number: int,
    summary: str,
    examined: Examined,
    was: tuple[Was, ...],
    not_covered: tuple[str, ...] = (),
) -> Recorded | None:
    """Writes down what it changed; None where that is nothing."""
    if not examined.steps:
        history.log.drop(number)
        return None
    body = Body("exec", summary, examined.steps, examined.changes, not_covered=not_covered, was=was)
    history.log.finish(number, body, examined.diffs)
    return Recorded(ChangeSet(changes=examined.changes, number=number, undoable=True, not_covered=not_covered))


def finish_unkept(history: History, number: int, summary: str, changes: tuple[Change, ...]) -> Recorded | None:
    """The same where there is no way back."""
    if not changes:
        history.log.drop(number)
        return None
    history.log.finish(number, Body("exec", summary, (), changes, undoable=False))
    return Recorded(ChangeSet(changes=changes, number=number, undoable=False))


def settle_command(workspace: Workspace, history: History, entry: Entry) -> None:
    """Writes down what a command changed that was cut off, as far as its snapshot tells. What others changed since is
    among it, and nobody can say which: so it is kept as one that is not certain."""
    end_abandoned()  # what is left of it could change more
    since = entry.time - timedelta(seconds=2 * BEFORE_SECONDS)
    try:
        taken = last_snapshot(workspace, history, since=since, until=entry.time)
        outcome = taken.compare(history)
        examined = outcome.examined
    except SnapshotError:
        unknown = msgspec.structs.replace(
            entry.body, summary=f"{entry.body.summary} (cut off; what it changed is not known)", undoable=False
        )
        history.log.finish(entry.number, msgspec.structs.replace(unknown, certain=False))
        return
    if not examined.steps:
        history.log.drop(entry.number)
        return
    body = Body(
        "exec",
        f"{entry.body.summary} {_CUT_OFF}",
        examined.steps,
        examined.changes,
        certain=False,
        was=outcome.was,
    )
    history.log.finish(entry.number, body, examined.diffs)
