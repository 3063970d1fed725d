"""A toolset for agents of pydantic-ai."""

from base64 import b64decode
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic_ai import ApprovalRequired, BinaryContent, RunContext, ToolReturn
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from handrail.frameworks.calls import (
    FrameworkCalls,
    Rail,
    WaitingCall,
    clean_key,
    describe_request,
    list_images,
    render_result,
)
from handrail.protocol.results import ToolResult

_ANY_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
"""handrail checks arguments itself, and its messages say how to correct them."""


class HandrailToolset(AbstractToolset[Any]):
    """The tools of a session.

    A call that needs approval raises `ApprovalRequired`. The output of the run is then a `DeferredToolRequests` with
    the preview in its metadata, and `DeferredToolResults` answers handrail's request. Approving commits the preview.
    """

    def __init__(self, rail: Rail, *, id: str | None = "handrail") -> None:  # noqa: A002  pydantic-ai's name
        self._calls, self._id = FrameworkCalls(rail), id

    @property
    def id(self) -> str | None:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        await self._calls.run_in_pool(self._calls.deny_rejected, partial(_find_denial, ctx.messages))
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema
                ),
                max_retries=ctx.max_retries,
                args_validator=_ANY_ARGUMENTS,
            )
            for tool in await self._calls.run_in_pool(self._calls.list_tools)
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002  handrail knows the tool by its name
    ) -> Any:
        run = self._calls.run_approved if ctx.tool_call_approved else self._calls.run
        outcome = await self._calls.run_in_pool(run, name, tool_args, ctx.tool_call_id or "")
        if isinstance(outcome, WaitingCall):
            raise ApprovalRequired(metadata=describe_request(outcome.request))
        return _convert_result(outcome)


def _find_denial(messages: Sequence[ModelMessage], _name: str, key: str) -> str | None:
    """The reason of a person who denied a call."""
    parts = (part for message in reversed(messages) for part in message.parts if isinstance(part, ToolReturnPart))
    denied = (part for part in parts if part.outcome == "denied" and clean_key(part.tool_call_id) == key)
    return next((str(part.content) for part in denied), None)


def _convert_result(result: ToolResult[Any]) -> Any:
    if not result.ok:
        raise ToolFailed(render_result(result))
    images = [BinaryContent(b64decode(one.content or ""), media_type=one.mime) for one in list_images(result)]
    return ToolReturn(render_result(result), content=images) if images else render_result(result)
