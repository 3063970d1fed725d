"""Finds the sessions of a workspace without making one."""

import os
from argparse import Namespace

from handrail.cli.exits import FAILED, Stop
from handrail.cli.place import workspace_of
from handrail.settings import state_folder
from handrail.store.archive import Kept, kept_sessions
from handrail.store.folder import StateFolder
from handrail.store.short_ids import matching

SHOWN = 4
"""So many ids are named in a line; they are long."""


def state_of_here() -> StateFolder:
    """The state folder that the environment says; it need not exist."""
    return StateFolder(state_folder(os.environ))


def sessions(options: Namespace) -> list[Kept]:
    """The sessions of the workspace."""
    return kept_sessions(state_of_here(), os.path.realpath(workspace_of(options)))


def session_folder(options: Namespace, session_id: str) -> str:
    """The folder of a session that has a journal."""
    return folder_of_session(os.path.realpath(workspace_of(options)), session_id)


def folder_of_session(workspace: str, spelled: str) -> str:
    """The same, where the workspace is known: its real path. The beginning of the id will do."""
    found = meant(spelled, workspace)
    if len(found) == 1:
        return os.path.join(state_of_here().home(workspace), found[0])
    more = "handrail log --sessions lists them"
    if found:
        told = f"{spelled[:80]!r} may be {', '.join(found[:SHOWN])}{' …' if len(found) > SHOWN else ''}"
        raise Stop(f"{told}. Write more of the id; {more}.", FAILED)
    ids = [os.path.basename(folder) for folder in state_of_here().sessions(workspace)]
    there = f"There are: {', '.join(ids)}." if ids else "It has none yet; handrail run and handrail call begin one."
    there = f"There are {len(ids)}: {more}." if len(ids) > SHOWN else there
    raise Stop(f"the workspace {workspace} has no session {spelled[:80]!r}. {there}", FAILED)


def meant(spelled: str, workspace: str) -> list[str]:
    """The ids of the sessions that somebody may mean, in a workspace by its real path: by what tells an id from others,
    else by how it begins."""
    ids = sorted(os.path.basename(folder) for folder in state_of_here().sessions(workspace))
    return matching(spelled, ids) or [one for one in ids if spelled and one.startswith(spelled)]
