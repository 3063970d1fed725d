"""The sessions that calls over HTTP belong to: one for each client by name, however often it connects."""

import threading
from collections.abc import Callable

from handrail.mcp.caller import Caller
from handrail.mcp.calling import Calls
from handrail.protocol.error import UsageError
from handrail.rail import Handrail

MOST = 16
"""Clients by different names. Whoever has the token can choose names, and each is a session that stays."""


class Rails:
    """Opened when they are first needed, closed together. Every method may be called by any thread."""

    def __init__(self, open_rail: Callable[[Caller], Handrail]) -> None:
        self._open = open_rail
        self._lock = threading.Lock()
        self._calls: dict[str, Calls] = {}
        self._ending = False

    def calls_of(self, caller: Caller) -> Calls:
        """The calls of a client; UsageError where there are too many clients, or the server ends."""
        with self._lock:
            found = self._calls.get(caller.name)
            if self._ending:
                raise UsageError("the server is ending")
            if found is None:
                if len(self._calls) >= MOST:
                    raise UsageError(f"{MOST} clients by other names have been here; start another server")
                found = self._calls[caller.name] = Calls(self._open(caller))
            return found

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
