"""Cursor. Its pages "Model Context Protocol (MCP)" and, for its command line, "Permissions"."""

from handrail.mcp.hosts.command import LaunchCommand
from handrail.mcp.hosts.editing.wanted import ListContains, ServerEntry
from handrail.mcp.hosts.host import HostFile, McpHost


def build_cursor_host(command: LaunchCommand) -> McpHost:
    """In which folder it starts a server it does not say, so the folder is named."""
    server = {"command": command.program, "args": command.build_serve_args("${workspaceFolder}")}
    denied = {"allow": ListContains(()), "deny": ListContains(("Shell(*)", "Write(**)"))}
    return McpHost(
        name="cursor",
        title="Cursor",
        files=(
            HostFile(paths=(".cursor/mcp.json",), wanted={"mcpServers": {"handrail": ServerEntry(server)}}),
            HostFile(paths=(".cursor/cli.json",), wanted={"permissions": denied}),
        ),
        off="Commands and writes of its own are denied to Cursor's command line (cursor-agent) in this project.",
        left="The editor has no file that switches its own terminal and edits off: there its agent can go round"
        " handrail. Leave auto-run off, and ask it to use handrail's tools.",
        then="Open this folder in Cursor and switch the server handrail on under Customize, MCPs.",
    )
