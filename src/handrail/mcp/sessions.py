"""The sessions that clients work in."""

import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from handrail.mcp.calls import ClientCalls
from handrail.mcp.protocol import Caller
from handrail.protocol.errors import HandrailError, UsageError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError
from handrail.protocol.wire import decode_json
from handrail.settings.model import Settings, Tools

if TYPE_CHECKING:
    from handrail.api import Handrail
    from handrail.protocol.tool_spec import ToolSpec

OpenRail = Callable[[Caller], "Handrail"]
"""Opens the session of a client, or raises HandrailError."""
MAX_SESSIONS = 16
"""Sessions of one HTTP server. A client with the token can choose names, and each name makes a session that stays."""
_MAX_SLUG_CHARS = 40
_DEFAULT_TOOLS = Tools()
_ENDING = "the server is ending"


def build_session_name(caller: Caller) -> str:
    """Names a session after its client: `mcp-claude-code`, or `mcp` for a client without a name."""
    slug = re.sub(r"[^a-z0-9]+", "-", caller.name.lower()).strip("-")[:_MAX_SLUG_CHARS].strip("-")
    return f"mcp-{slug}" if slug else "mcp"


def find_default_tools(settings: Settings) -> dict[str, msgspec.Raw] | None:
    """The tool list that a session will offer, by name. None if the settings change the tools.

    A client waits for this list at its start. Opening a session first would take longer than all else.
    """
    if settings.tools != _DEFAULT_TOOLS or settings.dialect is not None:
        return None
    # pkgutil.get_data does the same, and importing it takes more than a millisecond.
    data: bytes = __loader__.get_data(os.path.join(os.path.dirname(__file__), "default_tools.json"))
    return decode_json(data, dict[str, msgspec.Raw])


class LazySession:
    """The session of the one client over stdio. The first request that needs it opens it.

    If that fails, the client and stderr get the reason. The next request tries again, with settings that may be
    corrected by then.
    """

    def __init__(self, open_rail: OpenRail, on_open: "Callable[[Handrail], None]", note: Callable[[str], None]) -> None:
        self._open_rail = open_rail
        self._on_open = on_open
        self._note = note
        self._lock = threading.Lock()
        self._calls: ClientCalls | None = None
        self._last_note = ""

    @property
    def rail(self) -> "Handrail | None":
        """None before it is open."""
        return self._calls.rail if self._calls is not None else None

    def get_calls(self, caller: Caller) -> ClientCalls:
        """Raises ProtocolError if the session cannot be opened."""
        if self._calls is None:
            with self._lock:
                if self._calls is None:
                    self._calls = ClientCalls(self._open(caller))
        return self._calls

    def _open(self, caller: Caller) -> "Handrail":
        try:
            rail = self._open_rail(caller)
        except HandrailError as error:
            text = f"handrail: {error}"
            if text != self._last_note:  # a client may retry for ever, and a full stderr would block us
                self._last_note = text
                with suppress(OSError):
                    self._note(text)
            raise ProtocolError(INTERNAL_ERROR, f"handrail cannot open its session: {error}") from None
        self._on_open(rail)
        return rail


class _ThreadConnection(threading.local):
    id = ""


THREAD_CONNECTION = _ThreadConnection()
"""The HTTP connection that the current thread works for."""


class SessionPool:
    """The sessions of all clients over HTTP, one for each name. Thread-safe."""

    def __init__(self, open_rail: OpenRail, build_name: Callable[[Caller], str] = build_session_name) -> None:
        self._open_rail = open_rail
        self._build_name = build_name
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        """One lock for each name, so that no client waits while the session of another is opened."""
        self._calls: dict[str, ClientCalls] = {}
        self._ending = False

    def get_calls(self, caller: Caller) -> ClientCalls:
        """Raises HandrailError if the session cannot be opened, there are too many, or the server ends."""
        name = self._build_name(caller)
        with self._get_lock(name):
            if name in self._calls:
                return self._calls[name]
            calls = ClientCalls(self._open_rail(caller))
            calls.rail.begin_conversations(lambda: THREAD_CONNECTION.id)
            with self._lock:
                if not self._ending:
                    self._calls[name] = calls
                    return calls
            calls.rail.close()
        raise UsageError(_ENDING)

    def find_spec(self, name: str) -> "ToolSpec | None":
        """A tool of any session. All sessions have the tools of one workspace."""
        specs = (calls.rail.spec(name) for calls in tuple(self._calls.values()))
        return next((spec for spec in specs if spec is not None), None)

    def stop(self) -> None:
        """Cancels all calls and opens no more sessions."""
        with self._lock:
            self._ending = True
            opened = tuple(self._calls.values())
        for calls in opened:
            calls.rail.cancel()

    def close(self) -> None:
        """Waits for the calls, then closes the sessions."""
        self.stop()
        for calls in self._calls.values():
            calls.rail.close()

    def _get_lock(self, name: str) -> threading.Lock:
        with self._lock:
            if self._ending:
                raise UsageError(_ENDING)
            if name not in self._opening and len(self._opening) >= MAX_SESSIONS:
                raise UsageError(f"{MAX_SESSIONS} clients by other names have been here; start another server")
            return self._opening.setdefault(name, threading.Lock())
