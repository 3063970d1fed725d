"""The tools for LangChain: interrupts of LangGraph, whose nodes start again, and results without a graph."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from parked_session import open_rail

from handrail import Handrail, UsageError, tool
from handrail.frameworks.langchain import build_tools

CONFIG: Any = {"configurable": {"thread_id": "1"}}
Invoke = Callable[[Any, Any], dict[str, Any]]


def call(name: str, key: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": key, "type": "tool_call"}


APPEND = call("exec", "call_1", command="echo ran >>runs")
WRITE = call("write", "call_2", path="b.txt", content="b\n")
COUNT = call("count_up", "call_3")


def build(rail: Handrail, saver: InMemorySaver) -> Any:
    """A graph that runs the calls of a message in one node: all of them start again with it."""
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode(build_tools(rail)))
    builder.add_edge(START, "tools")
    return builder.compile(checkpointer=saver)


def invoke_sync(graph: Any, given: Any) -> dict[str, Any]:
    return graph.invoke(given, CONFIG)


def invoke_async(graph: Any, given: Any) -> dict[str, Any]:
    return asyncio.run(graph.ainvoke(given, CONFIG))


def decide(value: dict[str, Any]) -> dict[str, Any]:
    """Commands are approved, files are not."""
    answer = {"type": "approve"} if value["tool"] == "exec" else {"type": "reject", "message": "not now"}
    return {"request": value["request"], "revision": value["revision"], **answer}


def list_results(state: dict[str, Any]) -> dict[str, ToolMessage]:
    return {one.tool_call_id: one for one in state["messages"] if isinstance(one, ToolMessage)}


@pytest.mark.parametrize("invoke", [invoke_sync, invoke_async])
def test_answers_reach_their_own_calls_and_nothing_runs_again_when_a_node_starts_again(
    workspace: Path, tmp_path: Path, invoke: Invoke
) -> None:
    counted: list[int] = []

    @tool(read_only=True, auto_execute=True)
    def count_up() -> int:
        """Count up."""
        counted.append(1)
        return len(counted)

    with open_rail(workspace, tmp_path, tools=[count_up]) as rail:
        results = answer_all(build(rail, InMemorySaver()), invoke)
        assert rail.waiting() == ()
    assert (workspace / "runs").read_text() == "ran\n"
    assert not (workspace / "b.txt").exists()
    assert (results["call_1"].status, results["call_2"].status) == ("success", "error")
    assert "not now" in results["call_2"].content
    assert (results["call_3"].content, counted) == ("1", [1])


def answer_all(graph: Any, invoke: Invoke) -> dict[str, ToolMessage]:
    state = invoke(graph, {"messages": [AIMessage("", tool_calls=[COUNT, APPEND, WRITE])]})
    rounds = 0
    while waiting := state.get("__interrupt__"):
        rounds += 1
        assert rounds < 9
        state = invoke(graph, Command(resume={one.id: decide(one.value) for one in waiting}))
    return list_results(state)


def test_a_later_answer_reaches_the_call_in_another_process(rail: Handrail, workspace: Path, tmp_path: Path) -> None:
    saver = InMemorySaver()
    state = invoke_sync(build(rail, saver), {"messages": [AIMessage("", tool_calls=[APPEND])]})
    [waiting] = state["__interrupt__"]
    assert "+ran" in waiting.value["preview"]
    with open_rail(workspace, tmp_path) as other:
        state = invoke_sync(build(other, saver), Command(resume=decide(waiting.value)))
    assert list_results(state)["call_1"].artifact["artifacts"]["files_changed"] == ["runs"]
    assert (workspace / "runs").read_text() == "ran\n"


def test_an_answer_that_names_no_request_approves_nothing(rail: Handrail, workspace: Path) -> None:
    graph = build(rail, InMemorySaver())
    invoke_sync(graph, {"messages": [AIMessage("", tool_calls=[APPEND])]})
    with pytest.raises(UsageError, match="request"):
        invoke_sync(graph, Command(resume={"decisions": [{"type": "approve"}]}))
    assert len(rail.waiting()) == 1
    assert not (workspace / "runs").exists()


def test_without_a_graph_the_model_is_told_that_the_call_waits(rail: Handrail) -> None:
    tools = {tool.name: tool for tool in build_tools(rail)}
    assert tools["read"].args["path"]["type"] == "string"
    message = tools["write"].invoke(WRITE)
    assert (message.status, message.tool_call_id) == ("error", "call_2")
    assert "needs permission" in message.content
    assert "No file none" in tools["read"].invoke({"path": "none"})
