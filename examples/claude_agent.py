"""An agent of the Claude Agent SDK that works in the current folder with handrail's tools instead of Claude Code's, and
asks before it changes a file.

    python claude_agent.py "Make the prices."
"""

import asyncio
import os
import sys
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, TextBlock
from claude_agent_sdk.types import (
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from handrail import AsyncHandrail
from handrail.frameworks.claude_agent_sdk import build_options


async def ask(_name: str, _arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
    """Shows a preview. An empty line approves it, anything else is the reason why not."""
    print(context.description)
    reason = await asyncio.to_thread(input, "Enter to approve, or the reason why not: ")
    return PermissionResultDeny(message=reason) if reason else PermissionResultAllow()


async def main(prompt: str) -> None:
    async with await AsyncHandrail.open(".", mode="ask", on_permission="park") as rail:
        options = build_options(rail, can_use_tool=ask, setting_sources=[], cli_path=os.environ.get("CLAUDE"))
        async with ClaudeSDKClient(options) as client:
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    print("".join(block.text for block in message.content if isinstance(block, TextBlock)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
