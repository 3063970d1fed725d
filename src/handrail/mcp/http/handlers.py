"""What is done for each request."""

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from handrail.mcp.caller import Caller
from handrail.mcp.calling import Asks, Calls
from handrail.mcp.errors import INVALID_PARAMS
from handrail.mcp.http.callers import caller_of, level_of, session_of
from handrail.mcp.http.news import LEVELS, Level
from handrail.mcp.http.rails import Rails
from handrail.mcp.http.telling import Tell, listening, telling
from handrail.mcp.http.threads import Threads
from handrail.mcp.listing import tool_entry
from handrail.mcp.results import call_result, completed
from handrail.protocol.result import ToolResult
from handrail.store.identity import new_id

Context = ServerRequestContext[Any, Any]
_UNASKED: Level = "info"
"""The level of a client that did not say which it wants."""
_SESSIONS = 1_000


class Handlers:
    """The requests of all clients."""

    def __init__(self, rails: Rails, threads: Threads) -> None:
        self._rails = rails
        self._threads = threads
        self._levels: dict[str, Level] = {}
        """From which level on a connection wants to be told, where it said so."""

    async def list_tools(self, context: Context, _params: types.PaginatedRequestParams) -> dict[str, Any]:
        """tools/list: all of them at once."""
        caller = caller_of(context)
        calls = await self._calls(caller)
        listed = {"tools": [tool_entry(spec) for spec in calls.rail.specs()], "ttlMs": 0, "cacheScope": "private"}
        return completed(listed, caller)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        """tools/call."""
        caller = caller_of(context)
        calls = await self._calls(caller)
        call_id = new_id("call")
        async with telling(context, self._least(context)) as tell:
            outcome = await self._threads.run(
                lambda: _begun(calls, call_id, params, tell), lambda: calls.rail.cancel_call(call_id)
            )
        return completed(_told(outcome.interim if isinstance(outcome, Asks) else outcome), caller)

    async def set_level(self, context: Context, params: types.SetLevelRequestParams) -> dict[str, Any]:
        """logging/setLevel: for this connection, from now on."""
        self._levels[session_of(context)] = params.level
        while len(self._levels) > _SESSIONS:
            del self._levels[next(iter(self._levels))]
        return {}

    def _least(self, context: Context) -> Level | None:
        """From which level on the client is told; None where it is told nothing."""
        if caller_of(context).modern:
            wanted = level_of(context)
            return next((level for level in LEVELS if level == wanted), None)
        return self._levels.get(session_of(context), _UNASKED)

    async def _calls(self, caller: Caller) -> Calls:
        return await self._threads.run(lambda: self._rails.calls_of(caller))


def _told(result: ToolResult[Any]) -> dict[str, Any]:
    """A tool that is not there is an error of the protocol; all else is a result that the model can read and mend."""
    if result.error is not None and result.error.code == "UNKNOWN_TOOL":
        raise MCPError(INVALID_PARAMS, result.error.message, {"tools": result.error.details})
    return call_result(result)


def _begun(calls: Calls, call_id: str, params: types.CallToolRequestParams, tell: Tell) -> ToolResult[Any] | Asks:
    silence = listening(calls.rail, call_id, tell)
    try:
        return calls.begin(params.name, params.arguments or {}, call_id)
    finally:
        silence()
