"""A server of tools inside the process, for the Claude Agent SDK."""

from dataclasses import replace
from time import monotonic
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server
from claude_agent_sdk.types import (
    CanUseTool,
    McpSdkServerConfig,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from handrail.frameworks.calls import (
    FrameworkCalls,
    Rail,
    WaitingCall,
    approve,
    build_call_id,
    describe_request,
    list_images,
    render_result,
)
from handrail.protocol.permissions import Answer
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import ToolDescription
from handrail.protocol.version import VERSION

NAME = "handrail"
_PREFIX = f"mcp__{NAME}__"
_MAX_WAIT_SECONDS = 30
"""Claude Code calls a tool at once after the callback allowed it."""


def build_options(rail: Rail, *, can_use_tool: CanUseTool | None = None, **options: Any) -> ClaudeAgentOptions:
    """Options of the SDK with the tools of a session, and without Claude Code's own tools.

    The SDK calls `can_use_tool` for calls that handrail does not allow by itself. Its context has the preview as
    `description`. Other `options` are passed on, `tools` and `mcp_servers` too.
    """
    server = SessionServer(rail, can_use_tool)
    servers = {**options.pop("mcp_servers", {}), NAME: server.config}
    options.setdefault("tools", [])
    return ClaudeAgentOptions(mcp_servers=servers, can_use_tool=server.can_use_tool, **options)


class SessionServer:
    """The tools of a session, and the callback that decides their calls.

    Claude Code asks the callback first and calls the tool after that, with the same arguments and no id. So the
    callback runs the call or its preview, and the tool returns that result.
    """

    def __init__(self, rail: Rail, can_use_tool: CanUseTool | None = None) -> None:
        self._calls, self._ask = FrameworkCalls(rail), can_use_tool
        self._finished: list[tuple[float, str, ToolResult[Any]]] = []
        """The results that no tool returned yet, each with its time and the digest of its call."""
        tools = [self._build_tool(one) for one in self._calls.list_tools()]
        self.config: McpSdkServerConfig = create_sdk_mcp_server(NAME, VERSION, tools)

    async def can_use_tool(
        self, name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        """Decides a call. Calls of other servers' tools go to the callback of the program."""
        if not name.startswith(_PREFIX):
            if self._ask is not None:
                return await self._ask(name, arguments, context)
            return PermissionResultDeny(message=f"{name} is not a tool of handrail.")
        own = name.removeprefix(_PREFIX)
        outcome = await self._decide(own, arguments, context)
        if isinstance(outcome, PermissionResultDeny):
            return outcome
        self._finished.append((monotonic(), build_call_id(own, arguments, ""), outcome))
        return PermissionResultAllow(updated_input=arguments)

    async def _decide(
        self, name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> ToolResult[Any] | PermissionResultDeny:
        """The result of a call, asking the callback of the program if need be."""
        calls = self._calls
        outcome = await calls.run_in_pool(calls.run, name, arguments, context.tool_use_id or "")
        while isinstance(outcome, WaitingCall) and self._ask is not None:
            shown = replace(context, description=describe_request(outcome.request)["text"])
            decision = await self._ask(_PREFIX + name, arguments, shown)
            if isinstance(decision, PermissionResultDeny):
                denial = Answer(kind="deny", reason=decision.message or None)
                await calls.run_in_pool(calls.answer, outcome, denial)
                return decision
            outcome = await calls.run_in_pool(calls.answer, outcome, approve(outcome.request))
        return outcome.interim if isinstance(outcome, WaitingCall) else outcome

    def _take_finished(self, digest: str) -> ToolResult[Any] | None:
        """The last result of a call. Results of calls that Claude Code did not make after all are dropped."""
        oldest = monotonic() - _MAX_WAIT_SECONDS
        self._finished = [one for one in self._finished if one[0] > oldest]
        found = next((one for one in reversed(self._finished) if one[1] == digest), None)
        if found is None:
            return None
        self._finished.remove(found)
        return found[2]

    def _build_tool(self, tool: ToolDescription) -> SdkMcpTool[Any]:
        async def run(arguments: dict[str, Any]) -> dict[str, Any]:
            outcome = self._take_finished(build_call_id(tool.name, arguments, ""))
            if outcome is None:  # `allowed_tools` has it, so the callback was not asked
                outcome = await self._decide(tool.name, arguments, ToolPermissionContext())
            if isinstance(outcome, PermissionResultDeny):
                return {"content": [{"type": "text", "text": outcome.message or "denied"}], "is_error": True}
            return _convert_result(outcome)

        return SdkMcpTool(name=tool.name, description=tool.description, input_schema=tool.input_schema, handler=run)


def _convert_result(result: ToolResult[Any]) -> dict[str, Any]:
    images = [{"type": "image", "data": one.content, "mimeType": one.mime} for one in list_images(result)]
    return {"content": [{"type": "text", "text": render_result(result)}, *images], "is_error": not result.ok}
