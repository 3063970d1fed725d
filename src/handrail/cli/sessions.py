"""Finds the sessions of a workspace without making one."""

import os
from argparse import Namespace

from handrail.cli.exits import FAILED, CommandFailed
from handrail.cli.place import resolve_workspace
from handrail.protocol.records import SessionInfo, list_matching_ids
from handrail.settings import resolve_state_folder
from handrail.state import StoredState

MAX_SHOWN_IDS = 4
"""So many ids are named in a line; they are long."""


def open_state_folder() -> StoredState:
    """The state folder that the environment says; it need not exist."""
    return StoredState(resolve_state_folder(os.environ))


def list_workspace_sessions(options: Namespace) -> list[SessionInfo]:
    """The sessions of the workspace."""
    return open_state_folder().list_sessions(os.path.realpath(resolve_workspace(options)))


def resolve_session_folder(options: Namespace, session_id: str) -> str:
    """The folder of a session that has a journal."""
    return resolve_workspace_session(os.path.realpath(resolve_workspace(options)), session_id)


def resolve_workspace_session(workspace: str, spelled: str) -> str:
    """The same, where the workspace is known: its real path. The beginning of the id will do."""
    found = match_sessions(spelled, workspace)
    if len(found) == 1:
        return os.path.join(open_state_folder().home(workspace), found[0])
    more = "handrail log --sessions lists them"
    if found:
        told = f"{spelled[:80]!r} may be {', '.join(found[:MAX_SHOWN_IDS])}{' …' if len(found) > MAX_SHOWN_IDS else ''}"
        raise CommandFailed(f"{told}. Write more of the id; {more}.", FAILED)
    ids = [os.path.basename(folder) for folder in open_state_folder().sessions(workspace)]
    there = f"There are: {', '.join(ids)}." if ids else "It has none yet; handrail run and handrail call begin one."
    there = f"There are {len(ids)}: {more}." if len(ids) > MAX_SHOWN_IDS else there
    raise CommandFailed(f"the workspace {workspace} has no session {spelled[:80]!r}. {there}", FAILED)


def match_sessions(spelled: str, workspace: str) -> list[str]:
    """The ids of the sessions that somebody may mean, in a workspace by its real path: by what tells an id from others,
    else by how it begins."""
    ids = sorted(os.path.basename(folder) for folder in open_state_folder().sessions(workspace))
    return list_matching_ids(spelled, ids) or [one for one in ids if spelled and one.startswith(spelled)]
