"""Settles a change set that was begun and not finished, by what the files are: it was made, or it is taken back."""

import contextlib
from typing import Literal

from handrail.changes.carrying import Carrier
from handrail.changes.history import History
from handrail.changes.torn import mend
from handrail.changes.ways import agrees, back
from handrail.protocol.change import State
from handrail.protocol.error import StoreError, ToolError
from handrail.store.change_log import Entry, Step
from handrail.workspace.exact import reach, shown_path
from handrail.workspace.temporary import temporary_name
from handrail.workspace.unfinished import remove_unfinished
from handrail.workspace.workspace import Workspace

Settled = Literal["done", "nothing"]
_Where = Literal["before", "after", "between", "elsewhere"]


def settle_cut_off(workspace: Workspace, history: History, entry: Entry) -> Settled:
    """Settles a set whose work was cut off at any point: first what it left unfinished is cleared away."""
    for step in entry.body.steps:
        _clear(workspace, history, step, temporary_name(entry.session, entry.call_id))
    return settle(workspace, history, entry)


def settle(workspace: Workspace, history: History, entry: Entry) -> Settled:
    """Brings the files of a begun set to one side, and the log with them. What others changed since stays as it is."""
    temporary = temporary_name(entry.session, entry.call_id)
    carrier = Carrier(workspace, history, temporary)
    found = [(step, *_whereabouts(carrier, step)) for step in entry.body.steps]
    if _is_made([(step, where) for step, where, _ in found]):
        history.log.finish(entry.number, entry.body)
        return "done"
    ways_back = [Step(step.path, now, step.before) for step, where, now in found if where in {"after", "between"}]
    carrier.carry_out(ways_back)
    history.log.drop(entry.number)
    return "nothing"


def is_within(workspace: Workspace, entry: Entry) -> bool:
    """Whether all files of a set are in this session's reach; those of another session's own folder are not."""
    try:
        return all(shown_path(workspace, step.path) for step in entry.body.steps)
    except ToolError:
        return False


def _clear(workspace: Workspace, history: History, step: Step, temporary: str) -> None:
    """Removes unfinished files, and mends a file that was being written in place."""
    with contextlib.suppress(ToolError, OSError, StoreError), reach(workspace, step.path) as landing:
        remove_unfinished(landing.folder, temporary)
        if not landing.missing:
            mend(landing, step, history.blobs)


def _whereabouts(carrier: Carrier, step: Step) -> tuple[_Where, State | None]:
    try:
        now = carrier.find(step.path).state
    except ToolError:
        return "elsewhere", None
    if agrees(now, step):
        return "before", now
    if agrees(now, back(step)):
        return "after", now
    other_kind = step.before and step.after and step.before.kind != step.after.kind
    return ("between" if other_kind and now is None else "elsewhere"), now


def _is_made(found: list[tuple[Step, _Where]]) -> bool:
    """Whether everything that nobody else changed since is as it was to be. Folders alone do not make a change."""
    own = [(step, where) for step, where in found if where != "elsewhere"]
    files = [where for step, where in own if (step.after or step.before or _FOLDER).kind != "folder"]
    return bool(own) and all(where == "after" for where in (files or [where for _, where in own]))


_FOLDER = State(kind="folder")
