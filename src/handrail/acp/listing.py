"""Which sessions there are to go on with."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from acp.schema import ListSessionsResponse, SessionInfo

from handrail.acp.cards import build_session_title
from handrail.acp.errors import build_refusal
from handrail.protocol.errors import StoreError
from handrail.protocol.events import Event
from handrail.settings import resolve_state_folder
from handrail.store.sessions import open_messages
from handrail.store.state_dir import StateFolder, read_workspace_path, save_workspace_path

_MAX_PAGE_SESSIONS = 50


def note_workspace(workspace: str) -> None:
    """Notes where the sessions of a workspace work, so that they are listed where no folder is named."""
    real = os.path.realpath(workspace)
    save_workspace_path(_state().home(real), real)


def list_noted_workspaces() -> list[str]:
    """The folders that were noted, and are there."""
    homes = {os.path.dirname(folder) for folder in _state().sessions()}
    return sorted(place for home in homes if (place := read_workspace_path(home)) is not None and os.path.isdir(place))


def list_sessions(workspaces: Sequence[str], cursor: str | None) -> ListSessionsResponse:
    """The sessions of workspaces that somebody talked in, the latest first; a cursor is how many came before."""
    begin = _begin(cursor)
    found = [one for workspace in workspaces for one in _talks(workspace)]
    found.sort(key=lambda one: one.updated_at or "", reverse=True)
    end = begin + _MAX_PAGE_SESSIONS
    return ListSessionsResponse(sessions=found[begin:end], next_cursor=str(end) if len(found) > end else None)


def _talks(workspace: str) -> Iterator[SessionInfo]:
    for folder in _state().sessions(os.path.realpath(workspace)):
        with suppress(StoreError):  # one that cannot be read must not hide the others
            if (info := _info(folder, workspace)) is not None:
                yield info


def _info(folder: str, workspace: str) -> SessionInfo | None:
    """A session, called by what the person said first; None where nobody said anything."""
    with open_messages(folder) as messages:
        if not messages.any():
            return None
        title = build_session_title(messages.first_prompt() or "")
        last = messages.journal.event(messages.journal.last_seq())
    at = last.time.isoformat() if isinstance(last, Event) else None
    return SessionInfo(session_id=os.path.basename(folder), cwd=workspace, title=title or None, updated_at=at)


def _begin(cursor: str | None) -> int:
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise build_refusal(f"The cursor {cursor[:80]!r} is none of ours. Begin without one.")
    return int(cursor or 0)


def _state() -> StateFolder:
    return StateFolder(resolve_state_folder(os.environ))
