"""Where a replay begins: a copy of the workspace as it is now, with the change sets of the session taken back in it."""

import os
from typing import Any

import msgspec

from handrail.agent.replay.observing import Observed
from handrail.changes.copied_history import copy_history
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
    """Files that others changed, since or while it was recorded: what they were at the start nobody knows."""
    left_out: tuple[str, ...]
    """What could not be copied."""


def make_start(
    folder: str, state: StateFolder, workspace: str, session_id: str, settings: Loaded, observed: Observed
) -> Start:
    """Makes it in an empty folder. The workspace itself is only read."""
    copy, own = os.path.join(folder, os.path.basename(workspace) or "workspace"), os.path.join(folder, "state")
    copied = copy_tree(workspace, copy)
    copy_history(state.home(workspace), StateFolder(own).changes(os.path.realpath(copy)))
    taken, outside = _take_back(copy, own, session_id, settings)
    others = {*outside, *observed.meanwhile, *_not_as_then(copy, observed)}
    return Start(copy, own, taken, tuple(sorted(others)), copied.left_out)


def _not_as_then(copy: str, observed: Observed) -> list[str]:
    """The files that are not now as the session met them, although all that it changed was taken back."""
    with Workspace(copy) as workspace:
        return [path for path, then in observed.first.items() if workspace.hash_of(path) != then]


def _take_back(copy: str, own: str, session_id: str, settings: Loaded) -> tuple[tuple[int, ...], tuple[str, ...]]:
    with Handrail(copy, state_dir=own, session="replay-start", settings=settings, unattended=True) as rail:
        done = rail.undo(session=session_id, resolve="later")
        if done.data is not None:
            return done.data.undone, ()
        if done.error is None or done.error.code != "CONFLICT":
            return (), ()  # it has changed nothing that is in effect
        return _one_by_one(rail, session_id), _paths(done)


def _one_by_one(rail: Handrail, session_id: str) -> tuple[int, ...]:
    """Takes back what stands as it was left; what does not stays as it is, and nobody guesses what it was."""
    sets = [one for one in rail.changes(_ALL) if one.session_id == session_id and one.in_effect and not one.undoes]
    return tuple(one.number for one in sets if rail.undo(one.number, resolve="lines").ok)


def _paths(refused: ToolResult[Any]) -> tuple[str, ...]:
    """The files that stand in the way of an undo."""
    details: Any = refused.error.details if refused.error else None
    return tuple(sorted({str(one["path"]) for one in details.get("conflicts", ())})) if details else ()
