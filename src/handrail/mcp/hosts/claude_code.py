"""Claude Code. Its pages "Connect Claude Code to tools via MCP", "Configure permissions" and "Tools reference"."""

from handrail.mcp.hosts.command import LaunchCommand
from handrail.mcp.hosts.editing.wanted import ListContains, ServerEntry
from handrail.mcp.hosts.host import HostFile, McpHost

OWN_TOOLS = ("Bash", "Edit", "EnterWorktree", "ExitWorktree", "Monitor", "NotebookEdit", "PowerShell", "Write")
"""What runs commands or changes files; the two about worktrees run git, with the repository's hooks, and ask nobody. A
bare name in `deny` takes the tool away altogether, from subagents too. Read is left: with it Claude Code looks at
pictures, at its skills and at answers of ours that it keeps in files."""
_IN_WORKTREES = "Agent(isolation:worktree)"
"""The other way to one: an agent that is given a worktree of its own."""


def build_claude_code_host(command: LaunchCommand) -> McpHost:
    """That it is asked before it starts a server of a project stays as it is: `enabledMcpjsonServers` is not ours to
    set."""
    server = {"command": command.program, "args": command.build_serve_args()}
    return McpHost(
        name="claude-code",
        title="Claude Code",
        files=(
            HostFile(paths=(".mcp.json",), wanted={"mcpServers": {"handrail": ServerEntry(server)}}),
            HostFile(
                paths=(".claude/settings.json",),
                wanted={"permissions": {"deny": ListContains((*OWN_TOOLS, _IN_WORKTREES))}},
            ),
        ),
        off=f"Its own {', '.join(OWN_TOOLS[:-1])} and {OWN_TOOLS[-1]} are switched off in this project, and agents in"
        " git worktrees.",
        left="Its own Read, Glob and Grep stay: they change nothing, but what they read is in no log of ours, and no"
        " secret is kept from them. Hooks and skills that run commands of their own are not touched.",
        then="Start Claude Code here and say yes to the server handrail; /mcp shows it. With -p it is used once"
        " --allowedTools mcp__handrail says so.",
    )
