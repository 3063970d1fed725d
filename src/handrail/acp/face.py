"""The agent as an editor sees it: one method for each request of the protocol, which are called by their keywords."""

import asyncio
from collections.abc import Sequence
from typing import Any

from acp import PROTOCOL_VERSION, RequestError
from acp.helpers import ContentBlock
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    ClientCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from handrail.acp.choosing import choose, modes_of, options_of, tell_options
from handrail.acp.errors import INVALID_REQUEST, NOT_FOUND, answered, refused
from handrail.acp.hosting import Host
from handrail.acp.listing import list_sessions, noted_workspaces
from handrail.acp.opening import Servers, Wanted, keep_mode, open_session
from handrail.acp.questions import has_forms
from handrail.acp.session import Session
from handrail.protocol.decision import Mode
from handrail.protocol.version import VERSION

_NO_LOGIN = "There is nothing to log in to: a model's key is taken from its provider's environment variable."


class Face:
    """Serves one editor, with as many sessions as it opens."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._client: Client | None = None
        self._forms = False
        self._sessions: dict[str, Session] = {}
        self._opening = asyncio.Lock()
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        """Whom to tell and to ask."""
        self._client = conn

    @answered
    async def initialize(self, client_capabilities: ClientCapabilities | None = None, **_: Any) -> InitializeResponse:
        """The one version there is, whatever the client asks for: it goes where it cannot speak it."""
        self._forms = has_forms(client_capabilities)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(embedded_context=True, image=True),
                mcp_capabilities=McpCapabilities(http=self._host.serves_http),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    fork=SessionForkCapabilities(),
                    close=SessionCloseCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="handrail", title="handrail", version=VERSION),
        )

    @answered
    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Nobody logs in here."""
        raise refused(f"{_NO_LOGIN} The method {method_id[:80]!r} is none of ours.")

    @answered
    async def new_session(
        self,
        cwd: str,
        mcp_servers: Servers | None = None,
        additional_directories: Sequence[str] | None = None,
        **_: Any,
    ) -> NewSessionResponse:
        """Begins a session in a folder."""
        session = await self._open(Wanted(cwd, mcp_servers or (), additional_directories or ()))
        await self._begin(session)
        return NewSessionResponse(
            session_id=session.rail.session_id, modes=modes_of(session), config_options=[*options_of(session)]
        )

    @answered
    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Servers | None = None,
        additional_directories: Sequence[str] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        """Opens an older session, and tells the editor all that happened in it."""
        session = await self._open(Wanted(cwd, mcp_servers or (), additional_directories or ()), session_id)
        await self._begin(session, again=True)
        return LoadSessionResponse(modes=modes_of(session), config_options=[*options_of(session)])

    @answered
    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Servers | None = None,
        additional_directories: Sequence[str] | None = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        """The same for an editor that knows what happened."""
        session = await self._open(Wanted(cwd, mcp_servers or (), additional_directories or ()), session_id)
        await self._begin(session)
        return ResumeSessionResponse(modes=modes_of(session), config_options=[*options_of(session)])

    @answered
    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Servers | None = None,
        additional_directories: Sequence[str] | None = None,
        **_: Any,
    ) -> ForkSessionResponse:
        """Begins another session where this one is."""
        forked, mode = await self._fork(session_id, cwd)
        session = await self._open(Wanted(cwd, mcp_servers or (), additional_directories or ()), forked)
        await keep_mode(session.rail, mode)
        await self._begin(session)
        return ForkSessionResponse(session_id=forked, modes=modes_of(session), config_options=[*options_of(session)])

    @answered
    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """The sessions of a folder; where none is named, of all that are known."""
        return await asyncio.to_thread(self._list, cwd, cursor)

    @answered
    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> SetSessionModeResponse:
        """Changes the mode from here on, also in the middle of a turn."""
        session = self._session(session_id)
        await choose(session, "mode", mode_id)
        await tell_options(session)
        return SetSessionModeResponse()

    @answered
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Changes the mode or the model."""
        options = await choose(self._session(session_id), config_id, value)
        return SetSessionConfigOptionResponse(config_options=[*options])

    @answered
    async def prompt(self, session_id: str, prompt: list[ContentBlock], **_: Any) -> PromptResponse:
        """Does what the person says."""
        return await self._session(session_id).prompt(prompt)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Ends the prompt of a session. One that is unknown has none."""
        if (session := self._sessions.get(session_id)) is not None:
            session.cancel()

    @answered
    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Ends what is at work in a session. It can be loaded again."""
        session = self._session(session_id)
        del self._sessions[session_id]
        await session.close()
        return CloseSessionResponse()

    async def close(self) -> None:
        """Ends what is at work in all sessions."""
        async with self._opening:
            self._closed = True
            sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)

    async def _open(self, wanted: Wanted, session_id: str | None = None) -> Session:
        if self._client is None:
            raise AssertionError("the connection says so first")
        async with self._opening:
            if self._closed:
                raise RequestError(INVALID_REQUEST, "The agent is about to end. Nothing was opened.")
            before = self._sessions.get(session_id or "")
            if before is not None:
                before.must_be_idle()
                del self._sessions[before.rail.session_id]
                await before.hand_over()
            session = await open_session(self._host, self._client, wanted, session_id, forms=self._forms)
            self._sessions[session.rail.session_id] = session
            return session

    async def _fork(self, session_id: str, cwd: str) -> tuple[str, Mode]:
        if (known := self._sessions.get(session_id)) is not None:
            return await known.rail.fork_session(), known.rail.mode
        session = await self._open(Wanted(cwd), session_id)
        del self._sessions[session_id]
        try:
            return await session.rail.fork_session(), session.rail.mode
        finally:
            await session.hand_over()

    def _list(self, cwd: str | None, cursor: str | None) -> ListSessionsResponse:
        only = self._host.workspace(cwd) if cwd is not None else self._host.only
        return list_sessions(noted_workspaces() if only is None else [only], cursor)

    def _session(self, session_id: str) -> Session:
        if (session := self._sessions.get(session_id)) is None:
            told = f"There is no session {session_id[:80]!r} here. session/new begins one, session/load opens an older."
            raise RequestError(NOT_FOUND, told)
        return session

    async def _begin(self, session: Session, *, again: bool = False) -> None:
        """Tells the editor of a session, and what it offers once the editor knows that there is one."""
        await session.begin(again=again)
        task = asyncio.get_running_loop().create_task(session.greet())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
