"""Opens sessions for an editor: new ones, older ones, and others that begin where an older one is."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from acp import RequestError
from acp.interfaces import Client
from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from handrail.acp.errors import NOT_FOUND, build_refusal
from handrail.acp.hosting import AgentHost, EditorServer
from handrail.acp.listing import list_session_ids, note_workspace
from handrail.acp.reached import EditorLink
from handrail.acp.session import EditorSession
from handrail.async_api import AsyncHandrail
from handrail.protocol.decisions import Mode
from handrail.protocol.events import Mode as ModeEvent
from handrail.protocol.permissions import PermissionRequest
from handrail.runtime.foreign.source import ToolSource
from handrail.settings import LoadedSettings
from handrail.settings.rules import pick_stricter_mode

Servers = Sequence[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio]


class SessionRequest(msgspec.Struct, frozen=True):
    """What an editor wants for a session."""

    cwd: str
    servers: Servers = ()
    folders: Sequence[str] = ()
    """Which it works on besides: roots as far as the person's settings let them be."""


async def open_session(
    host: AgentHost, client: Client, wanted: SessionRequest, session: str | None = None, *, forms: bool
) -> EditorSession:
    """The session by this id, or a new one. It tells the editor nothing yet. A session that the person made stricter
    stays so: a restart must not loosen it."""
    workspace = host.workspace(wanted.cwd)
    folders = [_folder(path) for path in wanted.folders]
    if session is not None and session not in list_session_ids(workspace):
        raise _no_session(session, workspace)
    loaded = await asyncio.to_thread(host.settings, workspace)
    given = tuple(map(_server, wanted.servers))
    sources = await asyncio.to_thread(host.sources, loaded, workspace, given)
    rail = await asyncio.to_thread(_rail, workspace, session, loaded, sources)
    try:
        await rail.in_pool(lambda: note_workspace(workspace))
        await keep_mode(rail, await rail.in_pool(lambda: _last_mode(rail)))
        opened = EditorSession(rail, loaded, host, EditorLink(client, workspace, forms))
        await opened.work.look_for_models()
        opened.notes = await rail.set_client_roots(folders)
    except BaseException:
        await rail.close()
        raise
    return opened


async def keep_mode(rail: AsyncHandrail, mode: Mode) -> None:
    """Sets a mode that the person chose before, where it is the stricter one."""
    if pick_stricter_mode(mode, rail.mode) != rail.mode:
        await rail.set_mode(mode)


def _rail(
    workspace: str, session: str | None, loaded: LoadedSettings, sources: tuple[ToolSource, ...]
) -> AsyncHandrail:
    options: dict[str, Any] = {"sources": sources} if sources else {}
    return AsyncHandrail(workspace, session=session, settings=loaded, on_permission=_later, **options)


def _last_mode(rail: AsyncHandrail) -> Mode:
    said: list[Mode] = [one.mode for one in rail.events() if isinstance(one, ModeEvent)]
    return said[-1] if said else rail.mode


def _later(_: PermissionRequest) -> None:
    """Nobody is asked in the middle of a call: what waits is put to the person by `Asker`."""


def _no_session(session: str, workspace: str) -> RequestError:
    told = f"The workspace {workspace} has no session {session[:80]!r}. session/list says which it has."
    return RequestError(NOT_FOUND, told)


def _folder(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise build_refusal(f"additionalDirectories are absolute paths: {path[:200]!r} is none. Nothing was opened.")
    return path


def _server(given: HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio) -> EditorServer:
    if isinstance(given, HttpMcpServer):
        return EditorServer(name=given.name, url=given.url, headers={one.name: one.value for one in given.headers})
    if isinstance(given, McpServerStdio):
        variables = {one.name: one.value for one in given.env}
        return EditorServer(name=given.name, command=given.command, args=tuple(given.args), variables=variables)
    return EditorServer(name=given.name)  # over a transport that was not offered
