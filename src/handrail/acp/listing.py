"""Which sessions there are to go on with."""

import os
from collections.abc import Iterator, Sequence

from acp.schema import ListSessionsResponse, SessionInfo

from handrail.acp.cards import first_line
from handrail.acp.errors import refused
from handrail.settings import state_folder
from handrail.store.archive import Kept, kept_sessions, reading
from handrail.store.folder import StateFolder
from handrail.store.messages import Messages

_PAGE = 50


def list_sessions(workspaces: Sequence[str], cursor: str | None) -> ListSessionsResponse:
    """The sessions of workspaces that somebody talked in, the latest first; a cursor is how many came before."""
    begin = _begin(cursor)
    found = [one for workspace in workspaces for one in _talks(workspace)]
    found.sort(key=lambda one: one.updated_at or "", reverse=True)
    end = begin + _PAGE
    return ListSessionsResponse(sessions=found[begin:end], next_cursor=str(end) if len(found) > end else None)


def _talks(workspace: str) -> Iterator[SessionInfo]:
    state = StateFolder(state_folder(os.environ))
    real = os.path.realpath(workspace)
    for kept in kept_sessions(state, real):
        title = _title(os.path.join(state.home(real), kept.id))
        if title is not None:
            yield _info(kept, title, workspace)


def _begin(cursor: str | None) -> int:
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise refused(f"The cursor {cursor[:80]!r} is none of ours. Begin without one.")
    return int(cursor or 0)


def _info(kept: Kept, title: str, workspace: str) -> SessionInfo:
    at = kept.last.isoformat() if kept.last is not None else None
    return SessionInfo(session_id=kept.id, cwd=workspace, title=title or None, updated_at=at)


def _title(folder: str) -> str | None:
    """What the person said first; None where nobody said anything."""
    with reading(folder) as journal:
        messages = Messages(journal)
        if not messages.any():
            return None
        return first_line(messages.first_prompt() or "")
