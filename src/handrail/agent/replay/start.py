"""Where a replay begins: a copy of the workspace as it is now, with the change sets of the session taken back in it."""

import os
from typing import Any

import msgspec

from handrail.agent.replay.confining import confined, is_elsewhere
from handrail.agent.replay.observing import Observed
from handrail.changes.copied_history import copy_history
from handrail.changes.looking import look_at
from handrail.protocol.change import ChangeRecord
from handrail.protocol.error import ToolError
from handrail.protocol.result import ToolResult
from handrail.rail import Handrail
from handrail.settings import Loaded
from handrail.store.folder import StateFolder
from handrail.workspace.copying import copy_tree
from handrail.workspace.workspace import Workspace

_ALL = 1_000_000


class Start(msgspec.Struct, frozen=True):
    """A workspace and a state folder of its own."""

    workspace: str
    state: str
    taken_back: tuple[int, ...]
    """The change sets."""
    outside: tuple[str, ...]
    """Files that others changed since: what they were at the start nobody knows."""
    left_out: tuple[str, ...]
    """What could not be copied."""


def make_start(
    folder: str, state: StateFolder, workspace: str, session_id: str, settings: Loaded, observed: Observed
) -> Start:
    """Makes it in an empty folder. The workspace itself is only read."""
    copy, own = os.path.join(folder, os.path.basename(workspace) or "workspace"), os.path.join(folder, "state")
    copied = copy_tree(workspace, copy)
    copy_history(state.home(workspace), StateFolder(own).changes(os.path.realpath(copy)))
    taken, outside = _take_back(copy, own, session_id, confined(settings))
    others = {*outside, *observed.meanwhile, *_not_as_then(copy, observed)}
    return Start(copy, own, taken, tuple(sorted(others)), copied.left_out)


def _not_as_then(copy: str, observed: Observed) -> list[str]:
    """The files that are not now as the session met them, although all that it changed was taken back."""
    with Workspace(copy) as workspace:
        return [path for path, then in observed.first.items() if workspace.hash_of(path) != then]


def _take_back(copy: str, own: str, session_id: str, settings: Loaded) -> tuple[tuple[int, ...], tuple[str, ...]]:
    with Handrail(copy, state_dir=own, session="replay-start", settings=settings, unattended=True) as rail:
        done = rail.undo(session=session_id, resolve="later")
        taken, left = (done.data.undone, set[str]()) if done.data is not None else _one_by_one(rail, session_id)
        left |= _otherwise(copy, [one for one in rail.changes(_ALL) if one.session_id == session_id])
        return taken, tuple(sorted({*_paths(done), *(path for path in left if not is_elsewhere(path, copy))}))


def _otherwise(copy: str, sets: list[ChangeRecord]) -> set[str]:
    """The files that are not what the session found when it first changed them, whoever took its changes back."""
    found = {
        change.path: change.before
        for one in sets
        if not one.undoes
        for change in one.changes
        if change.kind == "file" and change.replaces is None and not os.path.isabs(change.path)
    }  # the sets come the latest first, so that the first of a path is what stays
    with Workspace(copy) as house:
        return {path for path, before in found.items() if _hash_at(house, path) != before}


def _hash_at(house: Workspace, path: str) -> str | None:
    try:
        state = look_at(house, os.fsencode(path)).state
    except ToolError:
        return ""
    return state.hash if state is not None else None


def _one_by_one(rail: Handrail, session_id: str) -> tuple[tuple[int, ...], set[str]]:
    """Takes back what stands as it was left; what does not stays as it is, and nobody guesses what it was. The numbers
    of what was taken back, and the files of what was not."""
    sets = [one for one in rail.changes(_ALL) if one.session_id == session_id and one.in_effect and not one.undoes]
    taken = [one for one in sets if rail.undo(one.number, resolve="lines").ok]
    left = {change.path for one in sets if one not in taken for change in one.changes}
    return tuple(one.number for one in taken), left


def _paths(refused: ToolResult[Any]) -> tuple[str, ...]:
    """The files that stand in the way of an undo."""
    details: Any = refused.error.details if refused.error else None
    return tuple(sorted({str(one["path"]) for one in details.get("conflicts", ())})) if details else ()
