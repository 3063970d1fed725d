"""Codex. Its pages "Model Context Protocol", "Config basics" and "Configuration Reference"."""

from handrail.mcp.hosts.command import LaunchCommand
from handrail.mcp.hosts.editing.wanted import ListContains, ServerEntry
from handrail.mcp.hosts.host import HostFile, McpHost

PASSED_ON = (
    *("HANDRAIL_CONFIG", "HANDRAIL_MODE", "HANDRAIL_NOTIFY", "HANDRAIL_STATE_DIR"),
    *("XDG_CONFIG_HOME", "XDG_STATE_HOME"),
    *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"),
)
"""Variables that say where the person's settings and our state are, and how to reach their desktop. Codex gives a
server PATH, HOME and a few others: without these it would go by other settings than `handrail` in a terminal does, and
ask where nobody looks."""


def build_codex_host(command: LaunchCommand) -> McpHost:
    """It has no switch for apply_patch, so its sandbox is told to write nothing: a patch of its own asks then, or
    fails. It starts servers outside of that sandbox, in the folder that it works in."""
    server = {"command": command.program, "args": command.build_serve_args(), "env_vars": ListContains(PASSED_ON)}
    wanted = {
        "sandbox_mode": "read-only",
        "features": {"shell_tool": False},
        "mcp_servers": {"handrail": ServerEntry(server)},
    }
    return McpHost(
        name="codex",
        title="Codex",
        files=(HostFile(paths=(".codex/config.toml",), wanted=wanted, form="toml"),),
        off="Its own shell is switched off in this project, and its own patches ask first (sandbox_mode read-only).",
        left="A patch of its own that you say yes to there goes round handrail.",
        then="Start Codex here and trust this project, or it does not read the file; /mcp shows the server.",
    )
