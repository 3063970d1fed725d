"""Decides about a command in a workspace that is only imagined: what exists does not matter, where it leads does."""

import posixpath
from typing import Any

from handrail.code.shell import find_shell_commands
from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide
from handrail.policy.network.needs import add_registry_urls, find_network_needs
from handrail.policy.parse import parse_command
from handrail.protocol.changes import Action, Change, Kind
from handrail.protocol.decisions import CommandFact, Decision, Facts, PathFact
from handrail.protocol.tool_spec import Arguments, ToolSpec

EXEC = ToolSpec(
    name="exec", title="", description="", arguments=Arguments, data=Arguments, permissions=("proc.exec",),
    side_effects=("files", "processes"),
)  # fmt: skip
ROOT = "/srv/shop"
LINKS = {"out": "/etc", "secret": ".env", "docs": "manual", "self": "."}
"""Names in the workspace that are links, and where they lead."""


def decided(command: str, mode: str = "ask", *, tier: int = 2, cwd: str = ".", **more: Any) -> Decision:
    """The decision about a command; `more` goes into the rules."""
    background = more.pop("background", False)
    rules = PolicyConfig(mode, **more)  # type: ignore[arg-type]
    return decide(EXEC, None, facts_of(command, tier=tier, cwd=cwd, background=background), rules)


def facts_of(command: str, *, tier: int = 2, cwd: str = ".", background: bool = False) -> Facts:
    """The facts about a command and the paths it names."""
    parsed = parse_command(command, cwd)
    seen = find_shell_commands(command) if parsed.needs_display else None
    paths = tuple(
        PathFact(path=use.path, access=use.access, kind="file", real=real(use.path)) for use in parsed.path_uses(seen)
    )
    needs = find_network_needs(parsed, seen)
    for client in needs.registries:
        needs = add_registry_urls(needs, client, ["https://registry.example.org"])
    fact = CommandFact(
        text=command,
        cwd=cwd,
        background=background,
        tier=tier,
        hosts=needs.hosts,
        unopened=needs.unreachable,
        seen=seen,
    )
    return Facts(paths=tuple(dict.fromkeys(paths)), command=fact)


def real(path: str) -> str | None:
    """Where a path leads: relative to the workspace, None outside it."""
    names: list[str] = []
    for name in path.removeprefix(ROOT + "/").split("/") if path != ROOT else []:
        if name == "..":
            if not names:
                return None
            names.pop()
        elif name not in {"", "."}:
            names.append(name)
            target = LINKS.get("/".join(names))
            if target is not None and target.startswith("/"):
                return None
            names = target.split("/") if target not in {None, "."} else names if target is None else []
    inside = not path.startswith("/") or path == ROOT or path.startswith(ROOT + "/")
    return (posixpath.join(*names) if names else ".") if inside else None


def change(path: str, action: Action = "modified", kind: Kind = "file", **more: Any) -> Change:
    """A change of a file."""
    return Change(path=path, action=action, kind=kind, **more)
