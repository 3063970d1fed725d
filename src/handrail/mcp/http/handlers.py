"""What is done for each request."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from handrail.api import Handrail
from handrail.mcp.caller import LEVELS, Caller, Level
from handrail.mcp.calling import ClientCalls, has_answer
from handrail.mcp.http.asking import RequestApproval, Settled
from handrail.mcp.http.callers import Context, identify_caller, read_level, read_session_id
from handrail.mcp.http.connections import ConnectionStates
from handrail.mcp.http.following import RequestRunner
from handrail.mcp.http.hand import HeldCall
from handrail.mcp.http.rails import SessionPool
from handrail.mcp.http.replies import get_reply
from handrail.mcp.http.roots import request_roots
from handrail.mcp.http.telling import open_notifications
from handrail.mcp.http.threads import CallThreads
from handrail.mcp.outcomes import Outcome, ParkedCall
from handrail.mcp.permission.rounds import resume_with_answer
from handrail.mcp.results import build_call_result, build_tool_list, complete_result, refuse_unknown_tool
from handrail.protocol.errors import HandrailError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError
from handrail.protocol.schema import get_input_schema


class HttpHandlers:
    """The requests of all clients."""

    def __init__(self, rails: SessionPool, threads: CallThreads) -> None:
        self._rails = rails
        self._threads = threads
        self._connections = ConnectionStates()
        self._changes = InMemorySubscriptionBus()
        self.listening = ListenHandler(self._changes)
        """Who listens for changes, of those without a handshake."""
        self._offered: dict[str, tuple[str, ...]] = {}
        """What each session offered at the last look."""

    async def list_tools(self, context: Context, _params: types.PaginatedRequestParams) -> dict[str, Any]:
        """tools/list: all of them at once."""
        caller = identify_caller(context)
        rail = (await self._calls(context, caller)).rail
        await self._look(context, caller, rail)
        return complete_result(build_tool_list(rail.mcp_tools(), caller), caller)

    def find_schema(self, name: str) -> dict[str, Any] | None:
        """What a tool takes, for who compares headers with arguments: else all tools would be listed for each call."""
        spec = self._rails.spec(name)
        return None if spec is None else get_input_schema(spec)

    async def call_tool(self, context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
        """tools/call."""
        caller = identify_caller(context)
        calls = await self._calls(context, caller)
        hand = HeldCall(calls, read_session_id(context))
        try:
            settled = await self._called(context, caller, calls, hand)
            await self._look(context, caller, calls.rail)
            told = complete_result(_told(settled), caller)
            hand.offered = True
            return told
        except HandrailError as error:  # what was done cannot be written down, or the session was closed
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        finally:
            if not hand.is_empty:
                await self._settle(context, hand)

    async def set_level(self, context: Context, params: types.SetLevelRequestParams) -> dict[str, Any]:
        """logging/setLevel: for this connection, from now on."""
        self._connections.get(read_session_id(context)).level = params.level
        return {}

    async def roots_changed(self, context: Context, _params: types.NotificationParams) -> None:
        """notifications/roots/list_changed: they are asked for when they are needed next."""
        self._connections.get(read_session_id(context)).roots_are_known = False

    async def _calls(self, context: Context, caller: Caller) -> ClientCalls:
        try:
            calls = await self._threads.run(lambda: self._rails.get_calls(caller))
        except HandrailError as error:
            raise MCPError(INTERNAL_ERROR, f"handrail cannot open its session: {error}") from None
        connection = self._connections.get(read_session_id(context))
        if caller.has_roots and not caller.modern and not connection.roots_are_known:
            await request_roots(context, connection, calls.rail, self._threads)
        return calls

    async def _look(self, context: Context, caller: Caller, rail: Handrail) -> None:
        """Tells whoever listens, if other tools are offered than before."""
        offered = rail.tool_names()
        if self._offered.get(rail.session_id, offered) is not offered:
            await self._changes.publish(ToolsListChanged())
        self._offered[rail.session_id] = offered
        if not caller.modern:
            connection = self._connections.get(read_session_id(context))
            if connection.offered is not None and connection.offered is not offered:
                await context.session.send_tool_list_changed()
            connection.offered = offered

    def _least(self, context: Context, caller: Caller) -> Level | None:
        """From which level on the client is told; None where it is told nothing."""
        if not caller.modern:
            return self._connections.get(read_session_id(context)).level
        return next((level for level in LEVELS if level == read_level(context)), None)

    async def _called(self, context: Context, caller: Caller, calls: ClientCalls, hand: HeldCall) -> Settled:
        params, call_id = context.params or {}, await self._threads.run(calls.rail.new_call_id)
        spec = calls.rail.spec(params["name"])
        workers = self._threads.get_workers(calls.rail.session_id, does=spec is not None and bool(spec.side_effects))
        try:
            async with open_notifications(context, self._least(context, caller)) as tell:
                following = RequestRunner(self._threads, workers, calls.rail, hand, tell)
                begun = await following.run(lambda: _begun(calls, caller, params, call_id, following), call_id)
                return await RequestApproval(context, caller, calls, following, tell).settle(begun)
        finally:
            calls.rail.drop_call_id(call_id)

    async def _settle(self, context: Context, hand: HeldCall) -> None:
        """What is in hand when a request is over goes to the client with the answer, or is there for the same call."""

        async def settle(reached: bool) -> None:
            await self._threads.run(lambda: hand.settle(reached))

        with anyio.CancelScope(shield=True):
            await (get_reply(context).then(settle) if hand.offered else settle(reached=False))


def _told(settled: Settled) -> dict[str, Any]:
    if isinstance(settled, dict):
        return settled
    if isinstance(settled, ParkedCall):
        return msgspec.to_builtins(build_call_result(settled.interim))
    with _as_the_sdk_says():
        refuse_unknown_tool(settled)
    return msgspec.to_builtins(build_call_result(settled))


def _begun(
    calls: ClientCalls, caller: Caller, params: Mapping[str, Any], call_id: str, following: RequestRunner
) -> Outcome:
    """Makes a call, or goes on with one that this request brings an answer for."""
    with _as_the_sdk_says():
        if has_answer(params) and caller.modern:
            return resume_with_answer(calls, params, caller.protocol, following.own.add)
    return calls.begin(params["name"], params.get("arguments") or {}, call_id, following.own.add)


@contextmanager
def _as_the_sdk_says() -> Generator[None]:
    """An error of the protocol, as what the SDK makes one of."""
    try:
        yield
    except ProtocolError as error:
        raise MCPError(error.code, error.message, error.data) from None
