"""The agent as an editor sees it: one method for each request of the protocol, which are called by their keywords."""

import asyncio
from collections.abc import Sequence
from typing import Any

from acp.helpers import ContentBlock
from acp.interfaces import Client
from acp.schema import (
    AuthenticateResponse,
    ClientCapabilities,
    CloseSessionResponse,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    ResumeSessionResponse,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from handrail.acp.choosing import build_choices, choose, tell_options
from handrail.acp.errors import answer_errors, build_refusal
from handrail.acp.hosting import AgentHost
from handrail.acp.introduction import build_initialize_response
from handrail.acp.listing import list_noted_workspaces, list_sessions
from handrail.acp.opening import Servers, SessionRequest
from handrail.acp.questions import has_forms
from handrail.acp.sessions import EditorSessions

_NO_LOGIN = "There is nothing to log in to: a model's key is taken from its provider's environment variable."
_Folders = Sequence[str] | None


class HandrailAgent:
    """Serves one editor, with as many sessions as it opens."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self._sessions = EditorSessions(host)

    def on_connect(self, conn: Client) -> None:
        """Whom to tell and to ask."""
        self._sessions.client = conn

    @answer_errors
    async def initialize(self, client_capabilities: ClientCapabilities | None = None, **_: Any) -> InitializeResponse:
        """Says what this is, and what it can do."""
        self._sessions.forms = has_forms(client_capabilities)
        return build_initialize_response(serves_http=self._host.serves_http)

    @answer_errors
    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Nobody logs in here."""
        raise build_refusal(f"{_NO_LOGIN} The method {method_id[:80]!r} is none of ours.")

    @answer_errors
    async def new_session(
        self, cwd: str, mcp_servers: Servers | None = None, additional_directories: _Folders = None, **_: Any
    ) -> NewSessionResponse:
        """Begins a session in a folder."""
        session = await self._sessions.open(SessionRequest(cwd, mcp_servers or (), additional_directories or ()))
        await self._sessions.begin(session)
        return NewSessionResponse(session_id=session.rail.session_id, **build_choices(session))

    @answer_errors
    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Servers | None = None,
        additional_directories: _Folders = None,
        **_: Any,
    ) -> LoadSessionResponse:
        """Opens an older session, and tells the editor all that happened in it."""
        session = await self._sessions.open(
            SessionRequest(cwd, mcp_servers or (), additional_directories or ()), session_id
        )
        await self._sessions.begin(session, again=True)
        return LoadSessionResponse(**build_choices(session))

    @answer_errors
    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Servers | None = None,
        additional_directories: _Folders = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        """The same for an editor that knows what happened."""
        session = await self._sessions.open(
            SessionRequest(cwd, mcp_servers or (), additional_directories or ()), session_id
        )
        await self._sessions.begin(session)
        return ResumeSessionResponse(**build_choices(session))

    @answer_errors
    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """The sessions of a folder; where none is named, of all that are known."""
        return await asyncio.to_thread(self._list, cwd, cursor)

    @answer_errors
    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> SetSessionModeResponse:
        """Changes the mode from here on, also in the middle of a turn."""
        session = self._sessions.get(session_id)
        await choose(session, "mode", mode_id)
        await tell_options(session)
        return SetSessionModeResponse()

    @answer_errors
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Changes the mode or the model."""
        options = await choose(self._sessions.get(session_id), config_id, value)
        return SetSessionConfigOptionResponse(config_options=[*options])

    @answer_errors
    async def prompt(self, session_id: str, prompt: list[ContentBlock], **_: Any) -> PromptResponse:
        """Does what the person says."""
        return await self._sessions.get(session_id).prompt(prompt)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Ends the prompt of a session. One that is unknown has none."""
        if (session := self._sessions.find(session_id)) is not None:
            session.cancel()

    @answer_errors
    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Ends what is at work in a session. It can be loaded again."""
        await self._sessions.close(session_id)
        return CloseSessionResponse()

    async def close(self) -> None:
        """Ends what is at work in all sessions."""
        await self._sessions.close_all()

    def _list(self, cwd: str | None, cursor: str | None) -> ListSessionsResponse:
        only = self._host.workspace(cwd) if cwd is not None else self._host.only
        return list_sessions(list_noted_workspaces() if only is None else [only], cursor)
