"""Selects the change sets of an undo or a redo."""

from collections.abc import Callable

from handrail.protocol.errors import ToolError
from handrail.store.change_log import ChangeLog, LoggedChangeSet

Within = Callable[[LoggedChangeSet], bool]
"""Whether this session can reach the files of a change set. Folders of another session are out of reach."""

_NO_CHANGES = "Session {} has changed nothing that is in effect. `handrail log --changes` says which sessions have."


def select_last_change(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """The last change of the workspace that is in effect, of any session."""
    for entry in log.latest():
        if _is_change(entry) and within(entry):
            return (entry.number,)
    raise _build_empty_error("undo")


def load_change_set(log: ChangeLog, number: int) -> LoggedChangeSet:
    entry = log.entry(number)
    if entry is None or entry.state != "done":
        raise ToolError("NOT_FOUND", f"There is no change {number}. `handrail log --changes` lists them.")
    return entry


def select_change(log: ChangeLog, number: int) -> tuple[int, ...]:
    """A change set that is not undone yet."""
    entry = load_change_set(log, number)
    if entry.undone_by is not None:
        raise ToolError("NO_CHANGE", f"Change {number} is undone already, by {entry.undone_by}.")
    return (number,)


def select_last_turn(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """Every change of the last turn that is in effect, the latest first."""
    last = log.entry(select_last_change(log, within)[0])
    of_turn = [
        entry.number
        for entry in log.latest()
        if last is not None
        and (entry.session, entry.turn) == (last.session, last.turn)
        and _is_change(entry)
        and within(entry)
    ]
    return tuple(of_turn)


def select_session(log: ChangeLog, session: str, within: Within) -> tuple[int, ...]:
    """Every change of a session that is in effect, the latest first."""
    mine = (entry for entry in log.latest() if entry.session == session)
    found = tuple(entry.number for entry in mine if _is_change(entry) and within(entry))
    if not found:
        raise ToolError("NO_CHANGE", _NO_CHANGES.format(session))
    return found


def select_last_undo(log: ChangeLog, within: Within) -> tuple[int, ...]:
    """The last undo that is in effect. Undoing it is a redo."""
    for entry in log.latest():
        is_undo = (
            entry.in_effect and entry.body.undoes and all(_is_change_number(log, one) for one in entry.body.undoes)
        )
        if is_undo and within(entry):
            return (entry.number,)
    raise _build_empty_error("redo")


def select_with_later(log: ChangeLog, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The sets, every later set that touched one of their files, and so on. The latest comes first."""
    chosen = {number: entry for number in numbers if (entry := log.entry(number)) is not None}
    since: dict[bytes, int] = {}
    """For each path: its later sets from this number on are chosen."""
    seen = set(chosen)
    waiting = sorted(chosen.values(), key=lambda entry: entry.number, reverse=True)
    while waiting:
        entry = waiting.pop()
        for step in entry.body.steps:
            # A later entry of a folder is no change of the folder.
            if step.kind == "folder" or since.get(step.path, entry.number + 1) <= entry.number:
                continue
            since[step.path] = entry.number
            new = [one for one in log.numbers_touching(step.path, entry.number) if one not in seen]
            seen.update(new)
            later = [one for one in map(log.entry, new) if one is not None and _is_change(one)]
            chosen |= {one.number: one for one in later}
            waiting += later
    return tuple(sorted(chosen, reverse=True))


def _is_change(entry: LoggedChangeSet) -> bool:
    return entry.in_effect and not entry.body.undoes


def _is_change_number(log: ChangeLog, number: int) -> bool:
    entry = log.entry(number)
    return entry is not None and not entry.body.undoes


def _build_empty_error(doing: str) -> ToolError:
    return ToolError("NO_CHANGE", f"There is nothing to {doing} in this workspace.")
