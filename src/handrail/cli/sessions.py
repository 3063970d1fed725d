"""Finds the sessions of a workspace without making one."""

import os
from argparse import Namespace

from handrail.cli.exits import FAILED, Stop
from handrail.cli.place import workspace_of
from handrail.settings import state_folder
from handrail.store.archive import Kept, kept_sessions
from handrail.store.folder import StateFolder


def state_of_here() -> StateFolder:
    """The state folder that the environment says; it need not exist."""
    return StateFolder(state_folder(os.environ))


def sessions(options: Namespace) -> list[Kept]:
    """The sessions of the workspace."""
    return kept_sessions(state_of_here(), os.path.realpath(workspace_of(options)))


def session_folder(options: Namespace, session_id: str) -> str:
    """The folder of a session that has a journal."""
    return folder_of_session(os.path.realpath(workspace_of(options)), session_id)


def folder_of_session(workspace: str, session_id: str) -> str:
    """The same, where the workspace is known: its real path."""
    folders = {os.path.basename(folder): folder for folder in state_of_here().sessions(workspace)}
    if session_id in folders:
        return folders[session_id]
    there = f"There are: {', '.join(folders)}." if folders else "It has none yet; handrail call begins one."
    raise Stop(f"the workspace {workspace} has no session {session_id[:80]!r}. {there}", FAILED)
