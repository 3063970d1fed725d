"""Codex. Its pages "Model Context Protocol", "Config basics" and "Configuration Reference"."""

from handrail.mcp.hosts.command import Command
from handrail.mcp.hosts.editing.wanted import Server
from handrail.mcp.hosts.host import Host, HostFile


def codex(command: Command) -> Host:
    """It has no switch for apply_patch, so its sandbox is told to write nothing: a patch of its own asks then, or
    fails. It starts servers outside of that sandbox, in the folder that it works in."""
    wanted = {
        "sandbox_mode": "read-only",
        "features": {"shell_tool": False},
        "mcp_servers": {"handrail": Server({"command": command.program, "args": command.serving()})},
    }
    return Host(
        name="codex",
        title="Codex",
        files=(HostFile(paths=(".codex/config.toml",), wanted=wanted, form="toml"),),
        off="Its own shell is switched off in this project, and its own patches ask first (sandbox_mode read-only).",
        left="A patch of its own that you say yes to there goes round handrail.",
        then="Start Codex here and trust this project, or it does not read the file; /mcp shows the server.",
    )
