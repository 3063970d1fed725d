"""opencode. Its pages "MCP servers", "Permissions" and "Config"."""

from handrail.mcp.hosts.command import Command
from handrail.mcp.hosts.editing.wanted import Server
from handrail.mcp.hosts.host import Host, HostFile

_PATIENCE = 120_000
"""Milliseconds: as long as a command may take unless the call says otherwise, and enough to fetch us the first time."""


def opencode(command: Command) -> Host:
    """`edit` is the permission of everything that changes files. It starts servers in the project's folder."""
    server = {"type": "local", "command": [command.program, *command.serving()], "timeout": _PATIENCE}
    wanted = {"mcp": {"handrail": Server(server)}, "permission": {"bash": "deny", "edit": "deny"}}
    return Host(
        name="opencode",
        title="opencode",
        files=(HostFile(paths=("opencode.json", "opencode.jsonc"), wanted=wanted),),
        off="Its own bash, edit, write and apply_patch are denied in this project.",
        left="Its own read, grep and glob stay: they change nothing, but what they read is in no log of ours. Plugins"
        " and custom tools that run commands are not touched.",
        then="Start opencode here.",
    )
