"""The sessions that an editor has open."""

import asyncio

from acp import RequestError
from acp.interfaces import Client

from handrail.acp.errors import INVALID_REQUEST, NOT_FOUND
from handrail.acp.hosting import AgentHost
from handrail.acp.opening import SessionRequest, open_session
from handrail.acp.session import EditorSession


class EditorSessions:
    """Opens them one after the other, each at most once, and closes them all."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self.client: Client | None = None
        """Whom to tell and to ask."""
        self.forms = False
        """Whether it has forms."""
        self._open: dict[str, EditorSession] = {}
        self._opening = asyncio.Lock()
        self._closed = False
        self._greetings: set[asyncio.Task[None]] = set()

    async def open(self, wanted: SessionRequest, session_id: str | None = None) -> EditorSession:
        """The session by this id, or a new one. One that is open here is opened anew."""
        if self.client is None:
            raise AssertionError("the connection says so first")
        async with self._opening:
            if self._closed:
                raise RequestError(INVALID_REQUEST, "The agent is about to end. Nothing was opened.")
            before = self._open.get(session_id or "")
            if before is not None:
                before.must_be_idle()
                del self._open[before.rail.session_id]
                await before.hand_over()
            session = await open_session(self._host, self.client, wanted, session_id, forms=self.forms)
            self._open[session.rail.session_id] = session
            return session

    async def begin(self, session: EditorSession, *, again: bool = False) -> None:
        """Tells the editor of a session, and what it offers once the editor knows that there is one."""
        await session.begin(again=again)
        task = asyncio.get_running_loop().create_task(session.greet())
        self._greetings.add(task)
        task.add_done_callback(self._greetings.discard)

    def find(self, session_id: str) -> EditorSession | None:
        """The session, if it is open."""
        return self._open.get(session_id)

    def get(self, session_id: str) -> EditorSession:
        """The session; refused where it is not open."""
        if (session := self._open.get(session_id)) is None:
            told = f"There is no session {session_id[:80]!r} here. session/new begins one, session/load opens an older."
            raise RequestError(NOT_FOUND, told)
        return session

    async def close(self, session_id: str) -> None:
        """Ends what is at work in a session."""
        session = self.get(session_id)
        del self._open[session_id]
        await session.close()

    async def close_all(self) -> None:
        """The same for all; none is opened any more."""
        async with self._opening:
            self._closed = True
            sessions, self._open = list(self._open.values()), {}
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
