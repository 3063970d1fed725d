"""The hosts by name."""

from collections.abc import Mapping

from handrail.mcp.hosts.claude_code import build_claude_code_host
from handrail.mcp.hosts.codex import build_codex_host
from handrail.mcp.hosts.command import LaunchCommand
from handrail.mcp.hosts.cursor import build_cursor_host
from handrail.mcp.hosts.host import McpHost
from handrail.mcp.hosts.opencode import build_opencode_host
from handrail.mcp.hosts.vs_code import build_vs_code_host
from handrail.mcp.hosts.zed import build_zed_host

NAMES = ("claude-code", "cursor", "vscode", "zed", "codex", "opencode")
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


def list_hosts(command: LaunchCommand, environ: Mapping[str, str]) -> tuple[McpHost, ...]:
    """All of them."""
    return (
        build_claude_code_host(command),
        build_cursor_host(command),
        build_vs_code_host(command),
        build_zed_host(command, environ),
        build_codex_host(command),
        build_opencode_host(command),
    )


def find_host_name(name: str) -> str | None:
    """The name of ours for what somebody calls a host; None for one that we do not know."""
    plain = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    found = _OTHER_NAMES.get(plain, plain)
    return found if found in NAMES else None
