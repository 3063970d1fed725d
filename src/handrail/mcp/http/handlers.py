"""Handlers of MCP requests over HTTP."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from handrail.api import Handrail
from handrail.mcp.calls import ClientCalls, Outcome, ParkedCall, has_answer
from handrail.mcp.http.middleware import Context, get_reply, get_session
from handrail.mcp.http.request_runner import CallThreads, HeldCall, RequestRunner, Settled, open_messages, send_log
from handrail.mcp.protocol import LEVEL_KEY, LEVELS, Caller, Level, parse_caller, parse_roots
from handrail.mcp.request_state import resume_with_answer
from handrail.mcp.results import EventMessage, build_call_result, build_tool_list, complete_result, refuse_unknown_tool
from handrail.mcp.sessions import SessionPool
from handrail.protocol.errors import HandrailError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError
from handrail.protocol.schema import get_input_schema

_ROOTS_SECONDS = 5.0
"""How long a call waits for the client's roots."""


class HttpHandlers:
    """The requests of all clients."""

    def __init__(self, sessions: SessionPool, threads: CallThreads) -> None:
        self._sessions = sessions
        self._threads = threads
        self._changes = InMemorySubscriptionBus()
        self.subscriptions = ListenHandler(self._changes)
        """The subscriptions of modern clients."""
        self._offered: dict[str, tuple[str, ...]] = {}
        """The tools of each session at the last check."""

    async def list_tools(self, context: Context, _params: types.PaginatedRequestParams) -> dict[str, Any]:
        caller = _identify_caller(context)
        rail = (await self._open_calls(context, caller)).rail
        await self._check_tools(context, caller, rail)
        return complete_result(build_tool_list(rail.mcp_tools(), caller), caller)

    def find_schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of a tool. The SDK compares headers with arguments. Without this it would list all tools
        for each call."""
        spec = self._sessions.find_spec(name)
        return None if spec is None else get_input_schema(spec)

    async def call_tool(self, context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
        caller = _identify_caller(context)
        calls = await self._open_calls(context, caller)
        held = HeldCall(calls)
        try:
            settled = await self._run_call(context, caller, calls, held)
            await self._check_tools(context, caller, calls.rail)
            result = complete_result(_build_result(settled, calls.rail.dialect), caller)
            held.is_offered = True
            return result
        except HandrailError as error:  # the result cannot be recorded, or the session was closed
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        finally:
            if not held.is_empty:
                await self._settle(context, held)

    async def set_level(self, context: Context, params: types.SetLevelRequestParams) -> dict[str, Any]:
        get_session(context).level = params.level
        return {}

    async def forget_roots(self, context: Context, _params: types.NotificationParams) -> None:
        """The roots have changed. The next call asks for them."""
        get_session(context).knows_roots = False

    async def _open_calls(self, context: Context, caller: Caller) -> ClientCalls:
        try:
            calls = await self._threads.run(lambda: self._sessions.get_calls(caller))
        except HandrailError as error:
            raise MCPError(INTERNAL_ERROR, f"handrail cannot open its session: {error}") from None
        if caller.has_roots and not caller.modern and not get_session(context).knows_roots:
            await self._request_roots(context, calls.rail)
        return calls

    async def _request_roots(self, context: Context, rail: Handrail) -> None:
        """Asks on the stream of this request: not every client has another one. If it hangs up, the next one asks."""
        session = get_session(context)
        session.knows_roots = True  # concurrent requests do not ask too
        try:
            await self._apply_roots(context, rail)
        except BaseException:
            session.knows_roots = False
            raise
        if get_reply(context).is_lost:
            session.knows_roots = False

    async def _apply_roots(self, context: Context, rail: Handrail) -> None:
        metadata = ServerMessageMetadata(related_request_id=context.request_id)
        try:
            result = await context.session.send_request(
                types.ListRootsRequest(), types.ListRootsResult, _ROOTS_SECONDS, metadata
            )
        except (MCPError, ValidationError):
            return
        folders = parse_roots(result.model_dump(mode="json"))
        for text in await self._threads.run(lambda: rail.set_client_roots(folders)):
            await send_log(context, EventMessage("warning", text))

    async def _check_tools(self, context: Context, caller: Caller, rail: Handrail) -> None:
        """Notifies clients if the tools have changed since the last check."""
        offered = rail.tool_names()
        if self._offered.get(rail.session_id, offered) is not offered:
            await self._changes.publish(ToolsListChanged())
        self._offered[rail.session_id] = offered
        if not caller.modern:
            session = get_session(context)
            if session.offered is not None and session.offered is not offered:
                await context.session.send_tool_list_changed()
            session.offered = offered

    async def _run_call(self, context: Context, caller: Caller, calls: ClientCalls, held: HeldCall) -> Settled:
        params, call_id = context.params or {}, await self._threads.run(calls.rail.new_call_id)
        try:
            async with open_messages(context, _find_level(context, caller)) as tell:
                runner = RequestRunner(context, caller, held, calls, self._threads, tell)
                begun = await runner.run(lambda: _begin(calls, caller, params, call_id, runner), call_id)
                return await runner.settle(begun)
        finally:
            calls.rail.drop_call_id(call_id)

    async def _settle(self, context: Context, held: HeldCall) -> None:
        async def settle(reached: bool) -> None:
            await self._threads.run(lambda: held.settle(reached))

        with anyio.CancelScope(shield=True):
            await (get_reply(context).on_end(settle) if held.is_offered else settle(reached=False))


def _identify_caller(context: Context) -> Caller:
    params, capabilities = context.session.client_params, context.session.client_capabilities
    info = params.client_info.model_dump(exclude_none=True) if params is not None else None
    able = capabilities.model_dump(exclude_none=True) if capabilities else None
    return parse_caller(context.session.protocol_version, info, able)


def _find_level(context: Context, caller: Caller) -> Level | None:
    """The least level of log messages. None sends none."""
    if not caller.modern:
        return get_session(context).level
    wanted: object = (context.meta or {}).get(LEVEL_KEY)
    return next((level for level in LEVELS if level == wanted), None)


def _begin(
    calls: ClientCalls, caller: Caller, params: Mapping[str, Any], call_id: str, runner: RequestRunner
) -> Outcome:
    with _as_sdk_error():
        if has_answer(params) and caller.modern:
            return resume_with_answer(calls, params, caller.protocol, runner.call_ids.add)
    return calls.begin(params["name"], params.get("arguments") or {}, call_id, runner.call_ids.add)


def _build_result(settled: Settled, dialect: str | None) -> dict[str, Any]:
    if isinstance(settled, dict):
        return settled
    if isinstance(settled, ParkedCall):
        return msgspec.to_builtins(build_call_result(settled.interim, dialect))
    with _as_sdk_error():
        refuse_unknown_tool(settled)
    return msgspec.to_builtins(build_call_result(settled, dialect))


@contextmanager
def _as_sdk_error() -> Generator[None]:
    try:
        yield
    except ProtocolError as error:
        raise MCPError(error.code, error.message, error.data) from None
