"""Tools for the OpenAI Agents SDK."""

from typing import Any

import msgspec
from agents import FunctionTool, RunContextWrapper, Tool, ToolOutputImage, ToolOutputText
from agents.items import ToolApprovalItem
from agents.tool_context import ToolContext

from handrail.async_api import AsyncHandrail
from handrail.frameworks.calls import FrameworkCalls, Rail, WaitingCall, approve, clean_key, list_images, render_result
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import ToolDescription


def build_tools(rail: Rail) -> list[Tool]:
    """The tools of a session for an agent of the SDK.

    The SDK asks each tool whether a call needs approval. handrail answers that by running the call: if it waits, the
    run is interrupted, and `RunState.approve` and `RunState.reject` answer handrail's request. Otherwise the result is
    there already when the SDK asks for it.
    """
    calls = FrameworkCalls(rail)
    return [_build_tool(calls, one) for one in calls.list_tools()]


def find_request(rail: Rail, interruption: ToolApprovalItem) -> PermissionRequest | None:
    """The request of an interruption, with its preview. None if it was answered elsewhere."""
    rail = rail.rail if isinstance(rail, AsyncHandrail) else rail
    key = clean_key(interruption.call_id or "")
    return next((one for one in rail.waiting() if one.tool_call_id.startswith(f"{key}~")), None)


def _build_tool(calls: FrameworkCalls, tool: ToolDescription) -> FunctionTool:
    finished: dict[str, ToolResult[Any]] = {}
    """The results of calls that needed no approval, until the SDK asks for them."""

    async def needs_approval(_context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        outcome = await calls.run_in_pool(calls.run, tool.name, arguments, call_id)
        if isinstance(outcome, WaitingCall):
            return True
        finished[call_id] = outcome
        return False

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        call_id = context.tool_call_id
        if (result := finished.pop(call_id, None)) is not None:
            return _convert_result(result)
        try:
            arguments = msgspec.json.decode(text or "{}")
        except msgspec.DecodeError as error:
            return f"The arguments are not JSON: {error}. Nothing ran."
        outcome = await calls.run_in_pool(calls.run, tool.name, arguments, call_id)
        # With `always_approve` the SDK never asks, so a new call may be approved.
        is_approved = context.is_tool_approved(tool.name, call_id)
        if isinstance(outcome, WaitingCall) and is_approved and outcome.view != "changed":
            outcome = await calls.run_in_pool(calls.answer, outcome, approve(outcome.request))
        return _convert_result(outcome.interim if isinstance(outcome, WaitingCall) else outcome)

    async def settle_rejections(context: RunContextWrapper[Any], _agent: Any) -> bool:
        """Denies the requests of rejected calls, since the SDK asks this before each turn. It is always enabled."""

        def find_reason(name: str, key: str) -> str | None:
            if name != tool.name or context.is_tool_approved(name, key) is not False:
                return None
            return context.get_rejection_message(name, key) or ""

        await calls.run_in_pool(calls.deny_rejected, find_reason)
        return True

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.input_schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
        is_enabled=settle_rejections,
        needs_approval=needs_approval,
    )


def _convert_result(result: ToolResult[Any]) -> Any:
    text, images = render_result(result), list_images(result)
    shown = [ToolOutputImage(image_url=f"data:{one.mime};base64,{one.content}") for one in images]
    return [ToolOutputText(text=text), *shown] if shown else text
