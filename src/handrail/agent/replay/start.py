"""Where a replay begins: a copy of the workspace as it is now, with the change sets of the session undone in it."""

import os
from typing import Any

import msgspec

from handrail.agent.replay.confining import confine_settings, is_elsewhere
from handrail.agent.replay.observing import FileObservations
from handrail.changes.copied_history import copy_history
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.results import ToolResult
from handrail.rail import Handrail
from handrail.settings import LoadedSettings
from handrail.store.state_dir import StateFolder
from handrail.workspace.tree_copy import copy_tree
from handrail.workspace.workspace import Workspace

_ALL = 1_000_000


class ReplayStart(msgspec.Struct, frozen=True):
    """A workspace and a state folder of its own."""

    workspace: str
    state: str
    taken_back: tuple[int, ...]
    """The change sets."""
    outside: tuple[str, ...]
    """Files that are not always as they were then."""
    meanwhile: tuple[str, ...]
    """Those of them that were changed between two calls of the session, and not by it."""
    left_out: tuple[str, ...]
    """What could not be copied."""


def make_start(
    folder: str,
    state: StateFolder,
    workspace: str,
    session_id: str,
    settings: LoadedSettings,
    observed: FileObservations,
) -> ReplayStart:
    """Makes it in an empty folder. The workspace itself is only read."""
    copy, own = os.path.join(folder, os.path.basename(workspace) or "workspace"), os.path.join(folder, "state")
    copied = copy_tree(workspace, copy)
    copy_history(state.home(workspace), StateFolder(own).changes(os.path.realpath(copy)))
    taken, outside = _take_back(copy, own, session_id, confine_settings(settings), observed)
    others = {*outside, *_not_as_then(copy, observed)}
    meanwhile = tuple(path for path in observed.meanwhile if path not in others)
    return ReplayStart(copy, own, taken, tuple(sorted({*others, *meanwhile})), meanwhile, copied.left_out)


def _not_as_then(copy: str, observed: FileObservations) -> list[str]:
    """The files that are not now as the session met them, although all that it changed was undone."""
    with Workspace(copy) as workspace:
        return [path for path, then in observed.first.items() if workspace.hash_of(path) != then]


def _take_back(
    copy: str, own: str, session_id: str, settings: LoadedSettings, observed: FileObservations
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    with Handrail(copy, state_dir=own, session="replay-start", settings=settings, unattended=True) as rail:
        sets = rail.changes(_ALL)
        done = rail.undo(session=session_id, resolve="later")
        taken, left = (done.data.undone, set[str]()) if done.data is not None else _one_by_one(rail, session_id)
        taken += _take_back_later(rail, copy, sets, observed)
        left |= _otherwise(copy, [one for one in rail.changes(_ALL) if one.session_id == session_id])
        return taken, tuple(sorted({*_paths(done), *(path for path in left if not is_elsewhere(path, copy))}))


def _take_back_later(
    rail: Handrail, copy: str, sets: list[ChangeRecord], observed: FileObservations
) -> tuple[int, ...]:
    """Undoes what other sessions and undo changed since, in files that are not as the session met them."""
    later = {one.number: one for one in sets if one.time >= observed.begun}
    left, taken = set(_not_as_then(copy, observed)), list[int]()
    for number, one in later.items():  # the latest first
        undone = one.undoes and later.keys() >= set(one.undoes)  # both came later: there is nothing to bring back
        concerned = left.intersection(change.path for change in one.changes)
        if one.in_effect and concerned and not undone and rail.undo(number).ok:
            taken.append(number)
            left = set(_not_as_then(copy, observed))
    return tuple(taken)


def _otherwise(copy: str, sets: list[ChangeRecord]) -> set[str]:
    """The files that are not what the session found when it first changed them, whoever undid its changes."""
    found = {
        change.path: change.before
        for one in sets
        if not one.undoes
        for change in one.changes
        if change.kind == "file" and change.replaces is None and not os.path.isabs(change.path)
    }  # the sets come the latest first, so that the first of a path is what stays
    with Workspace(copy) as house:
        return {path for path, before in found.items() if house.hash_of(path) != before}


def _one_by_one(rail: Handrail, session_id: str) -> tuple[tuple[int, ...], set[str]]:
    """Undoes what stands as it was left; the rest stays as it is, and nobody guesses what it was. Returns the numbers
    of the sets that were undone, and the files of those that were not."""
    sets = [one for one in rail.changes(_ALL) if one.session_id == session_id and one.in_effect and not one.undoes]
    taken = [one for one in sets if rail.undo(one.number, resolve="lines").ok]
    left = {change.path for one in sets if one not in taken for change in one.changes}
    return tuple(one.number for one in taken), left


def _paths(refused: ToolResult[Any]) -> tuple[str, ...]:
    """The files that stand in the way of an undo."""
    details: Any = refused.error.details if refused.error else None
    return tuple(sorted({str(one["path"]) for one in details.get("conflicts", ())})) if details else ()
