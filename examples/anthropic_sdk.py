"""A loop over the Anthropic SDK that works in the current folder with handrail's tools, and asks before it changes a
file.

    python anthropic_sdk.py "Make the prices."
"""

import asyncio
import os
import sys
from typing import Any

from anthropic import AsyncAnthropic

from handrail import Answer, AsyncHandrail
from handrail.frameworks.anthropic_sdk import run_calls_async
from handrail.frameworks.calls import describe_request
from handrail.frameworks.message_calls import ToolMessages, WaitingMessage


async def ask(outcome: ToolMessages | WaitingMessage) -> ToolMessages:
    """Shows each preview. An empty line approves it, anything else is the reason why not."""
    while isinstance(outcome, WaitingMessage):
        request = outcome.requests[0]
        print(describe_request(request)["text"])
        reason = await asyncio.to_thread(input, "Enter to approve, or the reason why not: ")
        answer = Answer(kind="deny" if reason else "once", reason=reason or None)
        outcome = await outcome.answer_async(request, answer)
    return outcome


async def main(prompt: str) -> None:
    client = AsyncAnthropic()
    model = os.environ.get("MODEL", "claude-sonnet-5-5")
    messages: list[Any] = [{"role": "user", "content": prompt}]
    async with await AsyncHandrail.open(".", mode="ask", on_permission="park") as rail:
        tools: Any = rail.anthropic_tools()
        while True:
            async with client.messages.stream(model=model, max_tokens=8000, messages=messages, tools=tools) as stream:
                message = await stream.get_final_message()
            messages.append({"role": "assistant", "content": message.content})
            results = (await ask(await run_calls_async(rail, message))).messages
            if not results:
                break
            messages += results
    print("".join(block.text for block in message.content if block.type == "text"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
