"""The sessions of an editor: opened, listed, closed."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from acp import RequestError
from acp.interfaces import Client
from acp.schema import (
    AcpMcpServer,
    HttpMcpServer,
    ListSessionsResponse,
    McpServerStdio,
    SessionInfo,
    SseMcpServer,
)

from handrail.acp.cards import build_session_title
from handrail.acp.permissions import EditorLink
from handrail.acp.session import AgentHost, EditorServer, EditorSession, SessionModel
from handrail.async_api import AsyncHandrail
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.events import Mode as ModeEvent
from handrail.protocol.jsonrpc import INVALID_REQUEST
from handrail.settings import resolve_state_folder
from handrail.settings.load import pick_stricter_mode
from handrail.state import StoredState

_NOT_FOUND = -32002
_MAX_PAGE_SESSIONS = 50
McpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


class SessionRequest(msgspec.Struct, frozen=True):
    """The wishes of an editor for a session."""

    cwd: str
    servers: Sequence[McpServer]
    folders: Sequence[str]
    """Further folders. They become roots as far as the user's settings allow it."""


class EditorSessions:
    """Opens sessions one after the other, each at most once."""

    def __init__(self, host: AgentHost, client: Client) -> None:
        self._host, self._client = host, client
        self._open: dict[str, EditorSession] = {}
        self._lock = asyncio.Lock()
        self._closed = False
        self._greetings: set[asyncio.Task[None]] = set()

    async def open(
        self, wanted: SessionRequest, session_id: str | None = None, *, replay: bool = False, has_forms: bool
    ) -> EditorSession:
        """Opens the session of an id, or a new one, and sends its events from now on. One that is open is opened anew.
        `replay`: the earlier events too."""
        async with self._lock:
            if self._closed:
                raise RequestError(INVALID_REQUEST, "The agent is shutting down. Nothing was opened.")
            before = self._open.get(session_id or "")
            if before is not None:
                before.check_idle()
                del self._open[before.rail.session_id]
                await before.hand_over()
            session = await _open_session(self._host, self._client, wanted, session_id, has_forms=has_forms)
            self._open[session.rail.session_id] = session
        await session.begin(replay=replay)
        task = asyncio.get_running_loop().create_task(session.greet())  # the editor has to get the response first
        self._greetings.add(task)
        task.add_done_callback(self._greetings.discard)
        return session

    def find(self, session_id: str) -> EditorSession | None:
        return self._open.get(session_id)

    def get(self, session_id: str) -> EditorSession:
        """The open session of an id. RequestError if there is none."""
        if (session := self._open.get(session_id)) is None:
            text = (
                f"There is no session {session_id[:80]!r} here. session/new starts a session; session/load "
                "opens an older one."
            )
            raise RequestError(_NOT_FOUND, text)
        return session

    async def close(self, session_id: str) -> None:
        """Closes a session. It can be loaded again."""
        session = self.get(session_id)
        del self._open[session_id]
        await session.close()

    async def close_all(self) -> None:
        """Closes all sessions. No further one can be opened."""
        async with self._lock:
            self._closed = True
            sessions, self._open = list(self._open.values()), {}
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)


# Opening


async def _open_session(
    host: AgentHost, client: Client, wanted: SessionRequest, session_id: str | None, *, has_forms: bool
) -> EditorSession:
    workspace = host.resolve_workspace(wanted.cwd)
    for path in wanted.folders:
        if not path.startswith("/") or "\0" in path:
            raise UsageError(f"additionalDirectories must be absolute paths, not {path[:200]!r}. Nothing was opened.")
    if session_id is not None and session_id not in _list_session_ids(workspace):
        text = f"The workspace {workspace} has no session {session_id[:80]!r}. session/list lists its sessions."
        raise RequestError(_NOT_FOUND, text)
    loaded = await asyncio.to_thread(host.load_settings, workspace)
    servers = tuple(map(_convert_server, wanted.servers))
    sources = await asyncio.to_thread(host.open_sources, loaded, workspace, servers)
    options: dict[str, Any] = {"session": session_id, "settings": loaded, "sources": sources}
    rail = await asyncio.to_thread(AsyncHandrail, workspace, on_permission="park", **options)
    try:
        await rail.in_pool(lambda: _open_state().save_workspace(os.path.realpath(workspace)))
        await rail.in_pool(lambda: _restore_mode(rail))
        model = await rail.in_pool(lambda: SessionModel(rail, loaded, host))
        notes = await rail.set_client_roots(list(wanted.folders))
        return EditorSession(rail, loaded, EditorLink(client, workspace, has_forms), model, notes)
    except BaseException:
        await rail.close()
        raise


def _restore_mode(rail: AsyncHandrail) -> None:
    """Sets the last mode of an older session if it is stricter: a restart must not loosen it."""
    modes: list[Mode] = [event.mode for event in rail.events() if isinstance(event, ModeEvent)]
    if modes and pick_stricter_mode(modes[-1], rail.mode) != rail.mode:
        rail.rail.set_mode(modes[-1])


def _convert_server(server: McpServer) -> EditorServer:
    if isinstance(server, HttpMcpServer):
        return EditorServer(name=server.name, url=server.url, headers={one.name: one.value for one in server.headers})
    if isinstance(server, McpServerStdio):
        variables = {one.name: one.value for one in server.env}
        return EditorServer(name=server.name, command=server.command, args=tuple(server.args), variables=variables)
    return EditorServer(name=server.name)  # of a transport that the agent does not offer


# Listing


def list_sessions(workspace: str | None, cursor: str | None) -> ListSessionsResponse:
    """The sessions with a prompt, the latest first, of one workspace or of all known ones. A cursor is a count."""
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise UsageError(f"Unknown cursor {cursor[:80]!r}. Begin without one.")
    start = int(cursor or 0)
    workspaces = [workspace] if workspace is not None else filter(os.path.isdir, _open_state().list_workspaces())
    found = [one for folder in workspaces for one in _describe_sessions(folder)]
    found.sort(key=lambda one: one.updated_at or "", reverse=True)
    end = start + _MAX_PAGE_SESSIONS
    return ListSessionsResponse(sessions=found[start:end], next_cursor=str(end) if len(found) > end else None)


def _describe_sessions(workspace: str) -> Iterator[SessionInfo]:
    for stored in _open_state().list_conversations(os.path.realpath(workspace)):
        at = stored.last.isoformat() if stored.last is not None else None
        title = build_session_title(stored.prompt) or None
        yield SessionInfo(session_id=stored.id, cwd=workspace, title=title, updated_at=at)


def _list_session_ids(workspace: str) -> set[str]:
    return {os.path.basename(folder) for folder in _open_state().sessions(os.path.realpath(workspace))}


def _open_state() -> StoredState:
    return StoredState(resolve_state_folder(os.environ))
