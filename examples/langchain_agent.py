"""A LangGraph agent that works in the current folder with handrail's tools, and asks before it changes a file.

    python langchain_agent.py "Make the prices."

The model here plays a script. Put `init_chat_model("NAME").bind_tools(tools)` in its place.
"""

import json
import os
import sys
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from handrail import Handrail
from handrail.frameworks.langchain import build_tools


def ask(value: dict[str, Any]) -> dict[str, Any]:
    """Shows a preview. An empty line approves it, anything else is the reason why not."""
    print(value["text"])
    reason = input("Enter to approve, or the reason why not: ")
    answer = {"type": "reject", "message": reason} if reason else {"type": "approve"}
    return {"request": value["request"], **answer}


def main(prompt: str) -> None:
    script = [AIMessage(**one) for one in json.loads(os.environ.get("SCRIPT", '[{"content": "Done."}]'))]
    with Handrail(".", mode="ask", on_permission="park") as rail:
        tools = build_tools(rail)
        model = FakeMessagesListChatModel(responses=script)

        def call_model(state: MessagesState) -> dict[str, Any]:
            return {"messages": [model.invoke(state["messages"])]}

        builder = StateGraph(MessagesState)
        builder.add_node("model", call_model)
        builder.add_node("tools", ToolNode(tools))
        builder.add_edge(START, "model")
        builder.add_conditional_edges("model", tools_condition)
        builder.add_edge("tools", "model")
        graph = builder.compile(checkpointer=InMemorySaver())
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        state = graph.invoke({"messages": [("user", prompt)]}, config)
        while waiting := state.get("__interrupt__"):
            state = graph.invoke(Command(resume={one.id: ask(one.value) for one in waiting}), config)
        for message in state["messages"]:
            message.pretty_print()


if __name__ == "__main__":
    main(sys.argv[1])
