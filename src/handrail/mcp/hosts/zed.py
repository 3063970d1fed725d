"""Zed. Its pages "Model Context Protocol", "Agent Profiles" and "External Agents"."""

import os
from collections.abc import Mapping
from importlib.util import find_spec

from handrail.mcp.hosts.command import LaunchCommand
from handrail.mcp.hosts.editing.wanted import ServerEntry
from handrail.mcp.hosts.host import HostFile, McpHost
from handrail.protocol.errors import build_install_command
from handrail.protocol.tool_spec import BASE_NAMES

_HARMLESS = ("diagnostics", "find_references", "go_to_definition")
"""Of Zed's own: what its language servers say. A profile has no tool that it does not name."""


def build_zed_host(command: LaunchCommand, environ: Mapping[str, str]) -> McpHost:
    """Profiles are for the person's own settings, so the server is there too. Zed starts it in the project's folder."""
    profile = {
        "name": "handrail",
        "tools": dict.fromkeys(_HARMLESS, True),
        "enable_all_context_servers": False,
        "context_servers": {"handrail": {"tools": dict.fromkeys(BASE_NAMES, True)}},
    }
    wanted = {
        "context_servers": {"handrail": ServerEntry({"command": command.program, "args": command.build_serve_args()})},
        "agent": {"profiles": {"handrail": profile}},
        "agent_servers": {
            "handrail": ServerEntry({"type": "custom", "command": command.program, "args": _as_agent(command)})
        },
    }
    return McpHost(
        name="zed",
        title="Zed",
        files=(HostFile(paths=(_settings(environ),), wanted=wanted),),
        off="The profile `handrail` has handrail's eight tools, and none of Zed's that run commands or touch files.",
        left="Zed's other profiles keep its own terminal and edit tools, and go round handrail. This is your own file:"
        " it counts for every project that you open.",
        then="Choose the profile handrail in the agent panel. As an agent of its own, with a model that handrail asks,"
        f" handrail is in the list of external agents{_agent_lacks()}.",
    )


def _as_agent(command: LaunchCommand) -> list[str]:
    return [*command.words, "acp"] if not command.words else ["--from", "handrail[acp]", "handrail", "acp"]


def _agent_lacks() -> str:
    return "" if find_spec("acp") else f", once its extra is installed: {build_install_command('acp')}"


def _settings(environ: Mapping[str, str]) -> str:
    home = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(home, "zed", "settings.json")
