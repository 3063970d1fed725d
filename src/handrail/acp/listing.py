"""Which sessions there are to go on with."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from acp.schema import ListSessionsResponse, SessionInfo

from handrail.acp.cards import first_line
from handrail.acp.errors import refused
from handrail.protocol.error import StoreError
from handrail.protocol.event import Event
from handrail.settings import state_folder
from handrail.store.archive import reading
from handrail.store.folder import StateFolder
from handrail.store.messages import Messages
from handrail.store.places import note_place, place_of

_PAGE = 50


def note_workspace(workspace: str) -> None:
    """Notes where the sessions of a workspace work, so that they are listed where no folder is named."""
    real = os.path.realpath(workspace)
    note_place(_state().home(real), real)


def noted_workspaces() -> list[str]:
    """The folders that were noted, and are there."""
    homes = {os.path.dirname(folder) for folder in _state().sessions()}
    return sorted(place for home in homes if (place := place_of(home)) is not None and os.path.isdir(place))


def list_sessions(workspaces: Sequence[str], cursor: str | None) -> ListSessionsResponse:
    """The sessions of workspaces that somebody talked in, the latest first; a cursor is how many came before."""
    begin = _begin(cursor)
    found = [one for workspace in workspaces for one in _talks(workspace)]
    found.sort(key=lambda one: one.updated_at or "", reverse=True)
    end = begin + _PAGE
    return ListSessionsResponse(sessions=found[begin:end], next_cursor=str(end) if len(found) > end else None)


def _talks(workspace: str) -> Iterator[SessionInfo]:
    for folder in _state().sessions(os.path.realpath(workspace)):
        with suppress(StoreError):  # one that cannot be read must not hide the others
            if (info := _info(folder, workspace)) is not None:
                yield info


def _info(folder: str, workspace: str) -> SessionInfo | None:
    """A session, called by what the person said first; None where nobody said anything."""
    with reading(folder) as journal:
        messages = Messages(journal)
        if not messages.any():
            return None
        title = first_line(messages.first_prompt() or "")
        last = journal.event(journal.last_seq())
    at = last.time.isoformat() if isinstance(last, Event) else None
    return SessionInfo(session_id=os.path.basename(folder), cwd=workspace, title=title or None, updated_at=at)


def _begin(cursor: str | None) -> int:
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise refused(f"The cursor {cursor[:80]!r} is none of ours. Begin without one.")
    return int(cursor or 0)


def _state() -> StateFolder:
    return StateFolder(state_folder(os.environ))
