"""What is done for each request."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handrail.mcp.instructions import INSTRUCTIONS
from handrail.mcp.results import CACHED, SERVER_INFO, build_tool_list
from handrail.mcp.stdio.checking import (
    ParamField,
    build_level_field,
    build_object_field,
    build_text_field,
    find_problems,
    refuse,
)
from handrail.mcp.stdio.connection import ClientRequest
from handrail.mcp.stdio.era import Negotiation
from handrail.mcp.stdio.listening import ToolListWatcher
from handrail.mcp.stdio.running import CallRunner
from handrail.mcp.stdio.telling import Notifier
from handrail.mcp.stdio.workplace import LazySession
from handrail.mcp.versions import MODERN

if TYPE_CHECKING:
    from msgspec import Raw

Ahead = Callable[[], "dict[str, Raw] | None"]
"""What a session will list, by name; None where only a session knows."""
Handler = Callable[[ClientRequest], object]

CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}}
_CALL = {
    "name": build_text_field(),
    "arguments": build_object_field(needed=False),
    "inputResponses": build_object_field(needed=False),
    "requestState": build_text_field(needed=False),
}


class StdioHandlers:
    """The requests of one client."""

    def __init__(
        self,
        era: Negotiation,
        telling: Notifier,
        listening: ToolListWatcher,
        running: CallRunner,
        workplace: LazySession,
        ahead: Ahead,
    ) -> None:
        self._era, self._telling, self._listening = era, telling, listening
        self._running, self._workplace, self._ahead = running, workplace, ahead
        self.greeted: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": lambda exchange: exchange.answer({}),
            "logging/setLevel": self._set_level,
            "tools/list": self._list,
            "tools/call": self._call,
        }
        """By their methods, for versions with a handshake."""
        self.modern: dict[str, Handler] = {
            "server/discover": self._discover,
            "tools/list": self._list,
            "tools/call": self._call,
            "subscriptions/listen": self._listen,
        }
        """And for those without."""

    def _initialize(self, exchange: ClientRequest) -> None:
        version = self._era.greet(exchange.params)
        told = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": SERVER_INFO}
        exchange.answer({**told, "instructions": INSTRUCTIONS})

    def _discover(self, exchange: ClientRequest) -> None:
        told = {"supportedVersions": list(MODERN), "capabilities": CAPABILITIES, **CACHED}
        exchange.answer({**told, "instructions": INSTRUCTIONS})

    def _set_level(self, exchange: ClientRequest) -> None:
        _check("logging/setLevel", exchange, {"level": build_level_field()})
        self._telling.set_level(exchange.params["level"])
        exchange.answer({})

    def _list(self, exchange: ClientRequest) -> None:
        _check("tools/list", exchange, {"cursor": build_text_field(needed=False)})
        if exchange.params.get("cursor") is not None:
            _check("tools/list", exchange, {"cursor": ParamField("one that this server gave; it gives none", _never)})
        ahead = self._ahead() if self._workplace.rail is None else None
        if ahead is None:
            self._list_offered(exchange)
        else:
            exchange.answer(build_tool_list(list(ahead.values()), exchange.caller))
            # While the client reads them, what its first call needs is made ready. What cannot be is told to that call.
            self._listening.check(self._workplace.calls(exchange.caller).rail, tuple(ahead))

    def _list_offered(self, exchange: ClientRequest) -> None:
        rail = self._workplace.calls(exchange.caller).rail
        self._listening.check(rail)
        exchange.answer(build_tool_list(rail.mcp_tools(), exchange.caller))

    def _call(self, exchange: ClientRequest) -> None:
        _check("tools/call", exchange, _CALL)
        self._running.start(exchange, self._workplace.calls(exchange.caller))

    def _listen(self, exchange: ClientRequest) -> None:
        _check("subscriptions/listen", exchange, {"notifications": build_object_field()})
        self._listening.begin(exchange)


def _check(method: str, exchange: ClientRequest, fields: dict[str, ParamField]) -> None:
    refuse(method, find_problems(exchange.params, fields))


def _never(_: object) -> bool:
    return False
