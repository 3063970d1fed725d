"""Which sessions there are to go on with."""

import os
from collections.abc import Iterator, Sequence

from acp.schema import ListSessionsResponse, SessionInfo

from handrail.acp.cards import build_session_title
from handrail.acp.errors import build_refusal
from handrail.settings import resolve_state_folder
from handrail.state import StoredState

_MAX_PAGE_SESSIONS = 50


def note_workspace(workspace: str) -> None:
    """Notes where the sessions of a workspace work, so that they are listed where no folder is named."""
    real = os.path.realpath(workspace)
    _state().save_workspace(real)


def list_noted_workspaces() -> list[str]:
    """The folders that were noted, and are there."""
    return [workspace for workspace in _state().list_workspaces() if os.path.isdir(workspace)]


def list_session_ids(workspace: str) -> set[str]:
    """The ids of the sessions of a workspace."""
    return {os.path.basename(folder) for folder in _state().sessions(os.path.realpath(workspace))}


def list_sessions(workspaces: Sequence[str], cursor: str | None) -> ListSessionsResponse:
    """The sessions of workspaces that somebody talked in, the latest first; a cursor is how many came before."""
    begin = _begin(cursor)
    found = [one for workspace in workspaces for one in _talks(workspace)]
    found.sort(key=lambda one: one.updated_at or "", reverse=True)
    end = begin + _MAX_PAGE_SESSIONS
    return ListSessionsResponse(sessions=found[begin:end], next_cursor=str(end) if len(found) > end else None)


def _talks(workspace: str) -> Iterator[SessionInfo]:
    for talk in _state().list_conversations(os.path.realpath(workspace)):
        at = talk.last.isoformat() if talk.last is not None else None
        title = build_session_title(talk.prompt) or None
        yield SessionInfo(session_id=talk.id, cwd=workspace, title=title, updated_at=at)


def _begin(cursor: str | None) -> int:
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise build_refusal(f"The cursor {cursor[:80]!r} is none of ours. Begin without one.")
    return int(cursor or 0)


def _state() -> StoredState:
    return StoredState(resolve_state_folder(os.environ))
