"""An agent of pydantic-ai that works in the current folder with handrail's tools, and asks before it changes a file.

python pydantic_ai_agent.py "Make the prices."
"""

import asyncio
import os
import sys

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied

from handrail import AsyncHandrail
from handrail.frameworks.pydantic_ai import HandrailToolset


async def ask(requests: DeferredToolRequests) -> DeferredToolResults:
    """Shows each preview. An empty line approves it, anything else is the reason why not."""
    results = requests.build_results()
    for call in requests.approvals:
        print(requests.metadata[call.tool_call_id]["text"])
        reason = await asyncio.to_thread(input, "Enter to approve, or the reason why not: ")
        results.approvals[call.tool_call_id] = ToolDenied(reason) if reason else True
    return results


async def main(prompt: str) -> None:
    async with await AsyncHandrail.open(".", mode="ask", on_permission="park") as rail:
        agent = Agent(
            os.environ.get("MODEL", "anthropic:claude-sonnet-5-5"),
            toolsets=[HandrailToolset(rail)],
            output_type=[str, DeferredToolRequests],
        )
        run = await agent.run(prompt)
        while isinstance(run.output, DeferredToolRequests):
            results = await ask(run.output)
            run = await agent.run(message_history=run.all_messages(), deferred_tool_results=results)
        print(run.output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
