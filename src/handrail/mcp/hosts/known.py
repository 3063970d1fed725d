"""The hosts by name."""

from collections.abc import Mapping

from handrail.mcp.hosts.claude_code import claude_code
from handrail.mcp.hosts.codex import codex
from handrail.mcp.hosts.command import Command
from handrail.mcp.hosts.cursor import cursor
from handrail.mcp.hosts.host import Host
from handrail.mcp.hosts.opencode import opencode
from handrail.mcp.hosts.vs_code import vs_code
from handrail.mcp.hosts.zed import zed

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


def hosts(command: Command, environ: Mapping[str, str]) -> tuple[Host, ...]:
    """All of them."""
    return (
        claude_code(command),
        cursor(command),
        vs_code(command),
        zed(command, environ),
        codex(command),
        opencode(command),
    )


def meant(name: str) -> str | None:
    """The name of ours for what somebody calls a host; None for one that we do not know."""
    plain = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    found = _OTHER_NAMES.get(plain, plain)
    return found if found in NAMES else None
