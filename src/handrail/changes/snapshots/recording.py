"""Writes down what a command did to the files themselves. That it runs is on the record before it starts, what it
changed only afterwards: of one that was cut off, the snapshot from before tells."""

from handrail.changes.history import History
from handrail.changes.layered.trial import Examined
from handrail.changes.recorder import Recorded
from handrail.protocol.change import Change, ChangeSet
from handrail.store.change_log import Body, Was


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
