"""What is done for each request."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from handrail.mcp.caller import Caller
from handrail.mcp.calling import Asks, Calls
from handrail.mcp.errors import INVALID_PARAMS, ProtocolError
from handrail.mcp.http.asking import Asking
from handrail.mcp.http.callers import caller_of, level_of, session_of
from handrail.mcp.http.news import LEVELS, Level, News
from handrail.mcp.http.rails import Rails
from handrail.mcp.http.telling import Tell, listening, telling
from handrail.mcp.http.threads import Threads
from handrail.mcp.listing import tool_entry
from handrail.mcp.permission.rounds import resumed
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

    async def call_tool(self, context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
        """tools/call."""
        caller = caller_of(context)
        calls = await self._calls(caller)
        call_id = new_id("call")
        async with telling(context, self._least(context)) as tell:
            outcome = await self._threads.run(
                lambda: _begun(calls, caller, context.params or {}, call_id, tell),
                lambda: calls.rail.cancel_call(call_id),
            )
            asking = Asking(context, caller, calls, self._threads, lambda text: tell(News("info", text, progress=True)))
            settled = await asking.settled(outcome)
        if isinstance(settled, dict):
            return completed(settled, caller)
        await self._threads.run(lambda: calls.delivered(settled.tool_call_id))
        return completed(_told(settled), caller)

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


def _begun(calls: Calls, caller: Caller, params: Mapping[str, Any], call_id: str, tell: Tell) -> ToolResult[Any] | Asks:
    silence = listening(calls.rail, call_id, tell)
    try:
        resumes = caller.modern and (params.get("requestState"), params.get("inputResponses")) != (None, None)
        found = resumed(calls, params, calls.signer, caller.protocol) if resumes else None
        return calls.begin(params["name"], params.get("arguments") or {}, call_id) if found is None else found
    except ProtocolError as error:
        raise MCPError(error.code, error.message, error.data) from None
    finally:
        silence()
