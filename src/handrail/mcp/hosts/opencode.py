"""opencode. Its pages "MCP servers", "Permissions" and "Config"."""

from handrail.mcp.hosts.command import LaunchCommand
from handrail.mcp.hosts.editing.wanted import ServerEntry
from handrail.mcp.hosts.host import HostFile, McpHost

_TIMEOUT_MS = 120_000
"""Milliseconds: as long as a command may take unless the call says otherwise, and enough to fetch us the first time."""


def build_opencode_host(command: LaunchCommand) -> McpHost:
    """`edit` is the permission of everything that changes files. It starts servers in the project's folder."""
    server = {"type": "local", "command": [command.program, *command.build_serve_args()], "timeout": _TIMEOUT_MS}
    wanted = {"mcp": {"handrail": ServerEntry(server)}, "permission": {"bash": "deny", "edit": "deny"}}
    return McpHost(
        name="opencode",
        title="opencode",
        files=(HostFile(paths=("opencode.json", "opencode.jsonc"), wanted=wanted),),
        off="Its own bash, edit, write and apply_patch are denied in this project.",
        left="Its own read, grep and glob stay: they change nothing, but what they read is in no log of ours. Plugins"
        " and custom tools that run commands are not touched.",
        then="Start opencode here.",
    )
