"""An agent of the OpenAI Agents SDK that works in the current folder with handrail's tools, and asks before it changes
a file.

    python openai_agents.py "Make the prices."
"""

import asyncio
import os
import sys

from agents import Agent, Runner, RunState
from agents.items import ToolApprovalItem

from handrail import AsyncHandrail
from handrail.frameworks.calls import describe_request
from handrail.frameworks.openai_agents import build_tools, find_request


async def ask(rail: AsyncHandrail, state: RunState, call: ToolApprovalItem) -> None:
    """Shows a preview. An empty line approves it, anything else is the reason why not."""
    request = await rail.in_pool(lambda: find_request(rail, call))
    print(describe_request(request)["text"] if request else f"{call.name} {call.arguments}")
    reason = await asyncio.to_thread(input, "Enter to approve, or the reason why not: ")
    if reason:
        state.reject(call, rejection_message=reason)
    else:
        state.approve(call)


async def main(prompt: str) -> None:
    async with await AsyncHandrail.open(".", mode="ask", on_permission="park") as rail:
        agent = Agent(name="coder", model=os.environ.get("MODEL", "gpt-5.4"), tools=build_tools(rail))
        result = await Runner.run(agent, prompt)
        while result.interruptions:
            state = result.to_state()
            for call in result.interruptions:
                await ask(rail, state, call)
            result = await Runner.run(agent, state)
        print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
