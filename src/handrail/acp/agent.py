"""The agent that an editor talks to by the Agent Client Protocol."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from acp import PROTOCOL_VERSION, Agent, RequestError
from acp.agent.connection import AgentSideConnection
from acp.helpers import ContentBlock
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    ClientCapabilities,
    CloseSessionResponse,
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
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from handrail.acp.session import AgentHost, EditorSession
from handrail.acp.sessions import EditorSessions, McpServer, SessionRequest, list_sessions
from handrail.acp.transport import AcpTransport
from handrail.models.base import ModelError
from handrail.protocol.errors import HandrailError, StoreError, ToolError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from handrail.protocol.version import VERSION
from handrail.state import report_defect

_NO_LOGIN = "There is nothing to log in to: a model's key is taken from its provider's environment variable."
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
_Handler = Callable[Parameters, Coroutine[Any, Any, Returned]]


def serve(host: AgentHost, source: int, sink: int) -> None:
    """Serves one editor until it closes the connection. Then no session is at work."""
    # The SDK logs tracebacks, which may quote anything. The person gets errors as responses.
    logging.getLogger().addHandler(logging.NullHandler())
    asyncio.run(serve_in_loop(host, source, sink))


async def serve_in_loop(host: AgentHost, source: int, sink: int) -> None:
    """Like `serve`, in an event loop of the main thread. SIGINT and SIGTERM end it."""
    transport = AcpTransport(source, sink)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, transport.end)
    agents: list[HandrailAgent] = []

    def build_agent(client: Client) -> Agent:
        agents.append(HandrailAgent(host, client))
        return cast("Agent", agents[0])

    # The SDK calls session/resume and session/close unstable.
    connection = AgentSideConnection(build_agent, transport, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        await agents[0].close()
        await transport.wait_until_answered()
        await connection.close()


def _answer_errors(handler: _Handler[Parameters, Returned]) -> _Handler[Parameters, Returned]:
    """Makes a response of each failure. The SDK would put the text of any exception on the wire."""

    @wraps(handler)
    async def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            return await handler(*args, **kwargs)
        except RequestError:
            raise
        except (ModelError, ToolError) as error:
            raise RequestError(INTERNAL_ERROR, str(error), {"code": error.code}) from None
        except StoreError as error:
            raise RequestError(INTERNAL_ERROR, str(error), {"code": "STORE"}) from None
        except HandrailError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from None
        except Exception as error:
            text = f"An internal error stopped this {report_defect(error)}"
            raise RequestError(INTERNAL_ERROR, text, {"code": "INTERNAL"}) from None

    return run


class HandrailAgent:
    """One method for each request of the protocol. The SDK calls them with keywords."""

    def __init__(self, host: AgentHost, client: Client) -> None:
        self._host = host
        self._sessions = EditorSessions(host, client)
        self._has_forms = False

    @_answer_errors
    async def initialize(self, client_capabilities: ClientCapabilities | None = None, **_: Any) -> InitializeResponse:
        """There is one version, whatever the client asks for. A client that does not know it has to disconnect."""
        forms = client_capabilities.elicitation if client_capabilities is not None else None
        self._has_forms = forms is not None and forms.form is not None
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(embedded_context=True, image=True),
                mcp_capabilities=McpCapabilities(http=self._host.has_http_servers),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="handrail", title="handrail", version=VERSION),
        )

    @_answer_errors
    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        raise RequestError(INVALID_PARAMS, f"{_NO_LOGIN} The method {method_id[:80]!r} is unknown.")

    @_answer_errors
    async def new_session(self, cwd: str, **wishes: Any) -> NewSessionResponse:
        session = await self._open(cwd, None, **wishes)
        return NewSessionResponse(session_id=session.rail.session_id, **session.build_choices())

    @_answer_errors
    async def load_session(self, cwd: str, session_id: str, **wishes: Any) -> LoadSessionResponse:
        """Opens an older session, and sends all its events."""
        session = await self._open(cwd, session_id, replay=True, **wishes)
        return LoadSessionResponse(**session.build_choices())

    @_answer_errors
    async def resume_session(self, cwd: str, session_id: str, **wishes: Any) -> ResumeSessionResponse:
        """Opens an older session for an editor that knows its events."""
        session = await self._open(cwd, session_id, **wishes)
        return ResumeSessionResponse(**session.build_choices())

    @_answer_errors
    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """The sessions of a folder. Without one, of all known folders."""

        def find() -> ListSessionsResponse:
            only = self._host.resolve_workspace(cwd) if cwd is not None else self._host.only_workspace
            return list_sessions(only, cursor)

        return await asyncio.to_thread(find)

    @_answer_errors
    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> SetSessionModeResponse:
        """Changes the mode from now on, also during a turn."""
        session = self._sessions.get(session_id)
        await session.choose("mode", mode_id)
        await session.send_options()
        return SetSessionModeResponse()

    @_answer_errors
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        options = await self._sessions.get(session_id).choose(config_id, value)
        return SetSessionConfigOptionResponse(config_options=options)

    @_answer_errors
    async def prompt(self, session_id: str, prompt: list[ContentBlock], **_: Any) -> PromptResponse:
        return await self._sessions.get(session_id).prompt(prompt)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancels the prompt of a session. An unknown session has none."""
        if (session := self._sessions.find(session_id)) is not None:
            session.cancel()

    @_answer_errors
    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        await self._sessions.close(session_id)
        return CloseSessionResponse()

    async def close(self) -> None:
        """Closes all sessions."""
        await self._sessions.close_all()

    async def _open(
        self,
        cwd: str,
        session_id: str | None,
        *,
        replay: bool = False,
        mcp_servers: Sequence[McpServer] | None = None,
        additional_directories: Sequence[str] | None = None,
        **_: Any,
    ) -> EditorSession:
        wanted = SessionRequest(cwd, mcp_servers or (), additional_directories or ())
        return await self._sessions.open(wanted, session_id, replay=replay, has_forms=self._has_forms)
