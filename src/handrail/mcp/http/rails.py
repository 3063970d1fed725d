"""The sessions that calls over HTTP belong to: one for each client by name, however often it connects."""

import threading
from collections.abc import Callable

from handrail.api import Handrail
from handrail.mcp.caller import Caller
from handrail.mcp.calling import ClientCalls
from handrail.mcp.http.connections import works_for
from handrail.mcp.sessions import build_session_name
from handrail.protocol.errors import UsageError
from handrail.protocol.tool_spec import ToolSpec

MAX_SESSIONS = 16
"""Clients by different names. Whoever has the token can choose names, and each is a session that stays."""
_ENDING = "the server is ending"


class SessionPool:
    """Opened when they are first needed, closed together. Every method may be called by any thread."""

    def __init__(
        self, open_rail: Callable[[Caller], Handrail], named: Callable[[Caller], str] = build_session_name
    ) -> None:
        self._open = open_rail
        self._named = named
        """What the session of a client is called: clients of one name share it."""
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        """To open a session may take a while: those of other names do not wait for it."""
        self._calls: dict[str, ClientCalls] = {}
        self._ending = False

    def get_calls(self, caller: Caller) -> ClientCalls:
        """The calls of a client; HandrailError where its session cannot be opened, where there are too many clients,
        or the server ends."""
        name = self._named(caller)
        with self._opening_of(name):
            if name in self._calls:
                return self._calls[name]
            calls = ClientCalls(self._open(caller))
            calls.rail.begin_conversations(lambda: works_for.connection)
            with self._lock:
                if not self._ending:
                    self._calls[name] = calls
                    return calls
            calls.rail.close()
        raise UsageError(_ENDING)

    def _opening_of(self, name: str) -> threading.Lock:
        with self._lock:
            if self._ending:
                raise UsageError(_ENDING)
            if name not in self._opening and len(self._opening) >= MAX_SESSIONS:
                raise UsageError(f"{MAX_SESSIONS} clients by other names have been here; start another server")
            return self._opening.setdefault(name, threading.Lock())

    def spec(self, name: str) -> ToolSpec | None:
        """A tool of a client that is here: all have those of the same workspace."""
        return next(
            (spec for calls in tuple(self._calls.values()) if (spec := calls.rail.spec(name)) is not None), None
        )

    def stop(self) -> None:
        """Ends what runs, and refuses what comes."""
        with self._lock:
            self._ending = True
            opened = tuple(self._calls.values())
        for calls in opened:
            calls.rail.cancel()

    def close(self) -> None:
        """Waits for what runs, and closes the sessions. They can be opened again."""
        self.stop()
        for calls in self._calls.values():
            calls.rail.close()
