"""Which change sets an undo or a redo is about."""

from collections.abc import Callable

from handrail.protocol.errors import ToolError
from handrail.store.change_log import ChangeLog, LoggedChangeSet

Within = Callable[[LoggedChangeSet], bool]
"""Whether the files of a change set are in reach: those in another session's own folder are not."""

_NOTHING_OF_IT = "Session {} has changed nothing that is in effect. `handrail log --changes` says which sessions have."


def select_last_change(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """The last change of the workspace that is in effect, whoever made it."""
    for entry in log.latest():
        if _counts(entry) and within(entry):
            return (entry.number,)
    raise _nothing("undo")


def load_change_set(log: ChangeLog, number: int) -> LoggedChangeSet:
    """The change set of a number."""
    entry = log.entry(number)
    if entry is None or entry.state != "done":
        raise ToolError("NOT_FOUND", f"There is no change {number}. `handrail log --changes` lists them.")
    return entry


def select_change(log: ChangeLog, number: int) -> tuple[int, ...]:
    """A change set that can be undone, by its number."""
    entry = load_change_set(log, number)
    if entry.undone_by is not None:
        raise ToolError("NO_CHANGE", f"Change {number} is undone already, by {entry.undone_by}.")
    return (number,)


def select_last_turn(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """Every change of the turn that the last change belongs to, the latest first."""
    last = log.entry(select_last_change(log, within)[0])
    of_turn = [
        entry.number
        for entry in log.latest()
        if last is not None
        and (entry.session, entry.turn) == (last.session, last.turn)
        and _counts(entry)
        and within(entry)
    ]
    return tuple(of_turn)


def select_session(log: ChangeLog, session: str, within: Within) -> tuple[int, ...]:
    """Every change of a session that is in effect, the latest first."""
    mine = (entry for entry in log.latest() if entry.session == session)
    found = tuple(entry.number for entry in mine if _counts(entry) and within(entry))
    if not found:
        raise ToolError("NO_CHANGE", _NOTHING_OF_IT.format(session))
    return found


def select_last_undo(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """The last undo that is in effect: undoing it is a redo."""
    for entry in log.latest():
        is_undo = entry.in_effect and entry.body.undoes and all(_is_plain(log, one) for one in entry.body.undoes)
        if is_undo and within(entry):
            return (entry.number,)
    raise _nothing("redo")


def select_with_later(log: ChangeLog, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The same sets and every later one that touched a file of theirs, and so on; the latest first."""
    chosen = {number: entry for number in numbers if (entry := log.entry(number)) is not None}
    since: dict[bytes, int] = {}
    """From which set on the later ones of a path are among the chosen."""
    seen = set(chosen)
    waiting = sorted(chosen.values(), key=lambda entry: entry.number, reverse=True)
    while waiting:
        entry = waiting.pop()
        for step in entry.body.steps:
            # What was put into a folder later is no change of the folder.
            if step.kind == "folder" or since.get(step.path, entry.number + 1) <= entry.number:
                continue
            since[step.path] = entry.number
            new = [one for one in log.numbers_touching(step.path, entry.number) if one not in seen]
            seen.update(new)
            later = [one for one in map(log.entry, new) if one is not None and _counts(one)]
            chosen |= {one.number: one for one in later}
            waiting += later
    return tuple(sorted(chosen, reverse=True))


def _counts(entry: LoggedChangeSet) -> bool:
    return entry.in_effect and not entry.body.undoes


def _is_plain(log: ChangeLog, number: int) -> bool:
    entry = log.entry(number)
    return entry is not None and not entry.body.undoes


def _nothing(doing: str) -> ToolError:
    return ToolError("NO_CHANGE", f"There is nothing to {doing} in this workspace.")
