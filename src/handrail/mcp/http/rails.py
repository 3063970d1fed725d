"""The sessions that calls over HTTP belong to: one for each client by name, however often it connects."""

import threading
from collections.abc import Callable

from handrail.mcp.caller import Caller
from handrail.mcp.calling import Calls
from handrail.mcp.sessions import session_name
from handrail.protocol.error import UsageError
from handrail.rail import Handrail

MOST = 16
"""Clients by different names. Whoever has the token can choose names, and each is a session that stays."""


class Rails:
    """Opened when they are first needed, closed together. Every method may be called by any thread."""

    def __init__(self, open_rail: Callable[[Caller], Handrail], named: Callable[[Caller], str] = session_name) -> None:
        self._open = open_rail
        self._named = named
        """What the session of a client is called: clients of one name share it."""
        self._lock = threading.Lock()
        self._calls: dict[str, Calls] = {}
        self._ending = False

    def calls_of(self, caller: Caller) -> Calls:
        """The calls of a client; HandrailError where its session cannot be opened, where there are too many clients,
        or the server ends."""
        name = self._named(caller)
        with self._lock:
            if self._ending:
                raise UsageError("the server is ending")
            if name not in self._calls:
                if len(self._calls) >= MOST:
                    raise UsageError(f"{MOST} clients by other names have been here; start another server")
                self._calls[name] = Calls(self._open(caller))
            return self._calls[name]

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
