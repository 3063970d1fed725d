"""Tools for LangChain, whose graphs are interrupted for approvals."""

from threading import Lock
from typing import Any, cast

import msgspec
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import interrupt
from pydantic import PrivateAttr

from handrail.frameworks.calls import (
    FrameworkCalls,
    Outcome,
    Rail,
    WaitingCall,
    answer_request,
    describe_request,
    list_images,
    note_begin,
    render_result,
)
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, AnswerKind
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import ToolDescription
from handrail.protocol.wire import encode

_ANSWERS: dict[object, AnswerKind] = {"approve": "once", "keep output": "output", "reject": "deny"}


def build_tools(rail: Rail) -> list[BaseTool]:
    """The tools of a session for LangChain.

    In a LangGraph graph with a checkpointer, a call that needs approval interrupts the graph. The value of the
    interrupt names the `request`. Resume with `{"request": …, "type": "approve"}`, or with `"type": "reject"` and a
    `message` for the model. LangGraph may start the calls of a node again: each call runs once.
    """
    calls = GraphCalls(rail)
    return [HandrailTool(calls, one) for one in calls.list_tools()]


class GraphCalls(FrameworkCalls):
    """The calls of graphs.

    LangGraph hands the answers of one task to its interrupts by their order, and a task may hold several calls at once.
    So an answer names its request, one call at a time takes answers, and it applies those of the others too.
    """

    def __init__(self, rail: Rail) -> None:
        super().__init__(rail)
        self._lock = Lock()

    def run_in_task(self, task: str, name: str, arguments: dict[str, Any], key: str) -> Outcome:
        """Runs a call, and interrupts the graph until it is answered. A task keeps its name when it starts again."""
        key = f"{task} {key}"
        outcome = self.run_once(name, arguments, key)
        if isinstance(outcome, WaitingCall):
            with self._lock:
                while isinstance(outcome := self.run_once(name, arguments, key), WaitingCall):
                    shown = {**describe_request(outcome.request), "arguments": arguments}
                    self._decide(interrupt(shown))  # returns the next answer that the task was resumed with
        return outcome

    def _decide(self, decision: Any) -> None:
        """Answers the request that a decision names."""
        given = cast("dict[str, Any]", decision) if isinstance(decision, dict) else {}
        if given.get("type") not in _ANSWERS or not isinstance(given.get("request"), str):
            wanted = "{'request': …, 'type': 'approve' or 'reject'}"
            raise UsageError(f"resume with {wanted}, not with {render_value(cast('object', decision))}")
        answer = Answer(kind=_ANSWERS[given["type"]], reason=given.get("message"), revision=given.get("revision"))
        for request in self.rail.waiting():
            if request.id == given["request"]:
                note_begin(request.tool_call_id)
        answer_request(self.rail, given["request"], answer)


class HandrailTool(BaseTool):
    """One tool of a session. The artifact of its message is the whole result."""

    response_format: Any = "content_and_artifact"
    handle_tool_error: Any = True
    _calls: GraphCalls = PrivateAttr()

    def __init__(self, calls: GraphCalls, tool: ToolDescription) -> None:
        super().__init__(name=tool.name, description=tool.description, args_schema=tool.input_schema)
        self._calls = calls

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self._parse_input(tool_input, tool_call_id), tool_call_id or ""), {}

    def _run(self, arguments: dict[str, Any], tool_call_id: str, config: RunnableConfig) -> tuple[Any, Any]:
        calls, task = self._calls, _find_task(config)
        if task:
            return _convert_outcome(calls.run_in_task(task, self.name, arguments, tool_call_id))
        return _convert_outcome(calls.run(self.name, arguments, tool_call_id))

    async def _arun(self, arguments: dict[str, Any], tool_call_id: str, config: RunnableConfig) -> tuple[Any, Any]:
        return await self._calls.run_in_pool(self._run, arguments, tool_call_id, config)


def _find_task(config: RunnableConfig) -> str:
    """The task of a graph that is saved and can be interrupted. Empty outside of one."""
    configurable = config.get("configurable", {})
    task = configurable.get("checkpoint_ns", "")
    return f"{configurable['thread_id']} {task}" if task and "thread_id" in configurable else ""


def _convert_outcome(outcome: Outcome) -> tuple[Any, Any]:
    result = outcome.interim if isinstance(outcome, WaitingCall) else outcome
    if not result.ok:
        raise ToolException(render_result(result))
    text, images = render_result(result), list_images(result)
    blocks = [{"type": "image", "base64": one.content, "mime_type": one.mime} for one in images]
    return [{"type": "text", "text": text}, *blocks] if blocks else text, msgspec.json.decode(encode(result))
