"""The programs that can use handrail's tools, as a table.

Each entry follows the host's own documentation: of Claude Code the pages "Connect Claude Code to tools via MCP",
"Configure permissions" and "Tools reference"; of Cursor "Model Context Protocol (MCP)" and "Permissions"; of VS Code
"MCP configuration reference" and "Custom agents"; of Zed "Model Context Protocol", "Agent Profiles" and "External
Agents"; of Codex "Model Context Protocol" and "Configuration Reference"; of opencode "MCP servers" and "Permissions".
"""

import os
import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import msgspec

from handrail.mcp.hosts.config_file import HostFile
from handrail.mcp.hosts.merge import ListContains, ServerEntry
from handrail.protocol.errors import build_install_command
from handrail.protocol.tool_spec import BASE_NAMES

CLAUDE_TOOLS = ("Bash", "Edit", "EnterWorktree", "ExitWorktree", "Monitor", "NotebookEdit", "PowerShell", "Write")
"""Tools of Claude Code that run commands or change files. The two for worktrees run git hooks without asking. A name in
`deny` removes the tool, for subagents too. Read stays: Claude Code needs it for pictures, skills and stored answers."""
_CLAUDE_WORKTREES = "Agent(isolation:worktree)"
_CODEX_VARIABLES = (
    *("HANDRAIL_CONFIG", "HANDRAIL_MODE", "HANDRAIL_NOTIFY", "HANDRAIL_STATE_DIR"),
    *("XDG_CONFIG_HOME", "XDG_STATE_HOME"),
    *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"),
)
"""Variables for our settings, our state and the desktop. Codex passes a server only PATH, HOME and a few others."""
_OPENCODE_TIMEOUT_MS = 120_000
"""As long as a command may take by default, and enough to install handrail with uvx."""
_ZED_TOOLS = ("diagnostics", "find_references", "go_to_definition")
"""Tools of Zed that only ask language servers."""
_VS_CODE_AGENT = """\
---
name: handrail
description: Works with handrail's tools only, so you can watch, check and undo every change.
tools: ['handrail/*', 'read/problems', 'search/usages', 'todo']
---
Read, search, change and run everything with handrail's tools. If a result says PERMISSION_REQUIRED, tell the
user that the call waits for approval. Repeat the same call after the answer.
"""
"""VS Code cannot disable its own tools. An agent has only those that it names."""


class McpHost(msgspec.Struct, frozen=True, kw_only=True):
    """Another program with an agent."""

    name: str
    """Its name for --config."""
    title: str
    off: str
    """Which of its own tools are off, for people."""
    left: str
    """Which of its own tools still bypass handrail, for people."""
    then: str
    """The next step of the person."""
    files: tuple[HostFile, ...] = ()


_HOSTS = (
    McpHost(
        name="claude-code",
        title="Claude Code",
        off=f"Its own {', '.join(CLAUDE_TOOLS[:-1])} and {CLAUDE_TOOLS[-1]} are disabled in this project, and so"
        " are agents in git worktrees.",
        left="Its own Read, Glob and Grep still work. They change nothing, but handrail does not log them and cannot"
        " hide secrets from them. Hooks and skills that run commands still work too.",
        then="Start Claude Code here and approve the server handrail; /mcp shows it. With -p, add"
        " --allowedTools mcp__handrail.",
    ),
    McpHost(
        name="cursor",
        title="Cursor",
        off="Its command line (cursor-agent) may not run commands or write files by its own tools in this project.",
        left="No settings file disables the terminal and edits of the editor, so its agent can bypass handrail there."
        " Keep auto-run off, and ask the agent to use handrail's tools.",
        then="Open this folder in Cursor and enable the server handrail under Customize, MCPs.",
    ),
    McpHost(
        name="vscode",
        title="VS Code",
        off="The agent `handrail` has handrail's tools. In it, VS Code's own tools for commands and edits are "
        "disabled.",
        left="The other agents of VS Code keep their own terminal and edit tools, which bypass handrail. No"
        " settings file disables these tools.",
        then="Open this folder in VS Code, start the server when it asks whether you trust it, and choose the agent"
        " handrail in the chat.",
    ),
    McpHost(
        name="zed",
        title="Zed",
        off="The profile `handrail` has handrail's eight tools. In it, Zed's own tools for commands and files "
        "are disabled.",
        left="Zed's other profiles keep its own terminal and edit tools, which bypass handrail. This file is your"
        " own and applies to every project that you open.",
        then="Choose the profile handrail in the agent panel. To use handrail as the agent, with its own model,"
        " choose handrail in the list of external agents{}.",
    ),
    McpHost(
        name="codex",
        title="Codex",
        off="Its own shell is disabled in this project, and its own patches need approval (sandbox_mode read-only).",
        left="A patch that you approve in Codex bypasses handrail.",
        then="Start Codex here and trust this project, or it does not read the file; /mcp shows the server.",
    ),
    McpHost(
        name="opencode",
        title="opencode",
        off="Its own bash, edit, write and apply_patch are denied in this project.",
        left="Its own read, grep and glob still work. They change nothing, but handrail does not log them. Plugins"
        " and custom tools that run commands still work too.",
        then="Start opencode here.",
    ),
)
NAMES = tuple(host.name for host in _HOSTS)
_OTHER_NAMES = {
    "claude": "claude-code",
    "claudecode": "claude-code",
    "cc": "claude-code",
    "vs-code": "vscode",
    "code": "vscode",
    "visual-studio-code": "vscode",
    "copilot": "vscode",
    "openai-codex": "codex",
    "codex-cli": "codex",
    "open-code": "opencode",
    "cursor-agent": "cursor",
    "zed-editor": "zed",
}


def find_host_name(name: str) -> str | None:
    """Our name of a host. None for an unknown one."""
    plain = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    found = _OTHER_NAMES.get(plain, plain)
    return found if found in NAMES else None


def list_hosts(command: "LaunchCommand", environ: Mapping[str, str]) -> tuple[McpHost, ...]:
    files = _build_files(command, environ)
    missing = "" if find_spec("acp") else f", once its extra is installed: {build_install_command('acp')}"
    return tuple(
        msgspec.structs.replace(host, files=files[host.name], then=host.then.format(missing)) for host in _HOSTS
    )


def _build_files(command: "LaunchCommand", environ: Mapping[str, str]) -> dict[str, tuple[HostFile, ...]]:
    program, args = command.program, command.build_serve_args()
    server: dict[str, Any] = {"command": program, "args": args}
    # Cursor and VS Code do not say in which folder they start a server.
    in_folder = {"command": program, "args": command.build_serve_args("${workspaceFolder}")}
    # Codex cannot disable apply_patch. In a read-only sandbox its patches ask or fail. Servers run outside of it.
    codex = {
        "sandbox_mode": "read-only",
        "features": {"shell_tool": False},
        "mcp_servers": {"handrail": ServerEntry({**server, "env_vars": ListContains(_CODEX_VARIABLES)})},
    }
    # `edit` is opencode's permission for everything that changes files.
    local = {"type": "local", "command": [program, *args], "timeout": _OPENCODE_TIMEOUT_MS}
    opencode = {"mcp": {"handrail": ServerEntry(local)}, "permission": {"bash": "deny", "edit": "deny"}}
    return {
        "claude-code": (
            _build_json(".mcp.json", {"mcpServers": {"handrail": ServerEntry(server)}}),
            _build_json(
                ".claude/settings.json", {"permissions": {"deny": ListContains((*CLAUDE_TOOLS, _CLAUDE_WORKTREES))}}
            ),
        ),
        "cursor": (
            _build_json(".cursor/mcp.json", {"mcpServers": {"handrail": ServerEntry(in_folder)}}),
            _build_json(
                ".cursor/cli.json",
                {"permissions": {"allow": ListContains(()), "deny": ListContains(("Shell(*)", "Write(**)"))}},
            ),
        ),
        "vscode": (
            _build_json(".vscode/mcp.json", {"servers": {"handrail": ServerEntry({"type": "stdio", **in_folder})}}),
            HostFile(paths=(".github/agents/handrail.agent.md",), text=_VS_CODE_AGENT, form="text"),
        ),
        "zed": (_build_json(_find_zed_settings(environ), _build_zed_settings(command)),),
        "codex": (HostFile(paths=(".codex/config.toml",), wanted=codex, form="toml"),),
        "opencode": (HostFile(paths=("opencode.json", "opencode.jsonc"), wanted=opencode),),
    }


def _build_json(path: str, wanted: dict[str, Any]) -> HostFile:
    return HostFile(paths=(path,), wanted=wanted)


def _build_zed_settings(command: "LaunchCommand") -> dict[str, Any]:
    """Only the user's own settings can have profiles. A profile has only the tools that it names."""
    agent_args = ["--from", "handrail[acp]", "handrail", "acp"] if command.words else ["acp"]
    agent = {"type": "custom", "command": command.program, "args": agent_args}
    profile = {
        "name": "handrail",
        "tools": dict.fromkeys(_ZED_TOOLS, True),
        "enable_all_context_servers": False,
        "context_servers": {"handrail": {"tools": dict.fromkeys(BASE_NAMES, True)}},
    }
    server = {"command": command.program, "args": command.build_serve_args()}
    return {
        "context_servers": {"handrail": ServerEntry(server)},
        "agent": {"profiles": {"handrail": profile}},
        "agent_servers": {"handrail": ServerEntry(agent)},
    }


def _find_zed_settings(environ: Mapping[str, str]) -> str:
    home = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(home, "zed", "settings.json")


# The command that starts handrail


class LaunchCommand(msgspec.Struct, frozen=True):
    program: str
    words: tuple[str, ...] = ()
    """The words before ours."""
    extra: tuple[str, ...] = ()
    """Further options: --mode, --session."""
    remark: str = ""
    """A remark for the person."""

    def build_serve_args(self, workspace: str | None = None) -> list[str]:
        """The arguments that serve a workspace. None: the folder in which the host starts the program. It is not named,
        because a named folder may be a whole home."""
        named = [] if workspace is None else ["--workspace", workspace]
        return [*self.words, "mcp", *named, *self.extra]


def find_launch_command(environ: Mapping[str, str], extra: tuple[str, ...] = ()) -> LaunchCommand:
    """`handrail` if it is installed, so that the file is right on every machine.

    In a virtual environment the whole path, because the host may not have activated it. `uvx` only if this process runs
    under uvx: its environments are temporary, and for others the name could install something else.
    """
    own = os.path.join(sys.prefix, "bin") if sys.prefix != sys.base_prefix else ""
    folders = environ.get("PATH", "").split(os.pathsep)
    if any(os.path.isabs(folder) and folder.rstrip("/") != own and _has_handrail(folder) for folder in folders):
        return LaunchCommand("handrail", (), extra)
    if own and os.path.realpath(own).startswith(_find_uv_cache(environ)):
        return LaunchCommand("uvx", ("handrail",), extra)
    if own and _has_handrail(own):
        program = os.path.join(own, "handrail")
        remark = (
            f"{program} exists on this machine only. To share the file, link the program and repeat this command:"
            f" mkdir -p ~/.local/bin && ln -s {shlex.quote(program)} ~/.local/bin/"
        )
        return LaunchCommand(program, (), extra, remark)
    remark = "handrail is not on PATH, so the client will not find it. Install handrail, then repeat this command."
    return LaunchCommand("handrail", (), extra, remark)


def can_find_program(program: str, workspace: str, environ: Mapping[str, str]) -> bool:
    """Whether a host that starts a program in the workspace finds it. Variables of the host count as found."""
    if "$" in program or program.startswith("~"):
        return True
    if "/" in program:
        return _is_executable(os.path.join(workspace, program))
    return any(_is_executable(os.path.join(folder, program)) for folder in environ.get("PATH", "").split(os.pathsep))


def _has_handrail(folder: str) -> bool:
    return _is_executable(os.path.join(folder, "handrail"))


def _is_executable(program: str) -> bool:
    return os.path.isfile(program) and os.access(program, os.X_OK)


def _find_uv_cache(environ: Mapping[str, str]) -> str:
    home = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.realpath(environ.get("UV_CACHE_DIR") or os.path.join(home, "uv")), "")
