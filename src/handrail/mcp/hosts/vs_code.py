"""VS Code. Its pages "Add and manage MCP servers", "MCP configuration reference" and "Custom agents"."""

from handrail.mcp.hosts.command import LaunchCommand
from handrail.mcp.hosts.editing.wanted import ServerEntry
from handrail.mcp.hosts.host import HostFile, McpHost

AGENT = """\
---
name: handrail
description: Works with handrail's tools only, so every change can be watched, checked and taken back.
tools: ['handrail/*', 'read/problems', 'search/usages', 'todo']
---
Read, search, change and run everything with handrail's tools. A result that says PERMISSION_REQUIRED waits for the
person: tell them, and make the same call again once they have answered.
"""
"""The only way that VS Code has to leave its own tools out: an agent that names those that it has."""


def build_vs_code_host(command: LaunchCommand) -> McpHost:
    """A server for the workspace, and an agent that has its tools and none of VS Code's that run or change anything."""
    server = {"type": "stdio", "command": command.program, "args": command.build_serve_args("${workspaceFolder}")}
    return McpHost(
        name="vscode",
        title="VS Code",
        files=(
            HostFile(paths=(".vscode/mcp.json",), wanted={"servers": {"handrail": ServerEntry(server)}}),
            HostFile(paths=(".github/agents/handrail.agent.md",), text=AGENT, form="text"),
        ),
        off="The agent `handrail` has handrail's tools, and none of VS Code's that run commands or change files.",
        left="The other agents of VS Code keep their own terminal and edit tools, and go round handrail: no file"
        " switches those off.",
        then="Open this folder in VS Code, start the server when it asks whether you trust it, and choose the agent"
        " handrail in the chat.",
    )
